"""Compare two runs on the same items: difference, interval, p, wins and losses, and what else was not equal.

``dare-eval compare A B`` prints what this file computes. A benchmark whose settings differ in a way that changes
the question is refused (no number), unless the reader allows that setting by name; then its label stays beside
the number. p values are adjusted over all printed tests (Holm).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dare_eval.errors import UsageError, unknown
from dare_eval.records.comparable import LABEL, REFUSE, Comparability, Difference, compare_settings
from dare_eval.records.cost import cost_of
from dare_eval.records.ledger import Inequality, training_budget, unequal
from dare_eval.records.pairing import Flip, Pairs, pair_items
from dare_eval.records.power import detectable_effect
from dare_eval.records.runs import Run
from dare_eval.records.significance import PairedTest, holm, paired_binary, paired_bootstrap

ALPHA = 0.05
"""Level from which a difference counts, after Holm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkComparison:
    """Two results on one data set in one metric; ``b`` minus ``a``."""

    dataset: str
    metric: str
    n: int
    """Items scored in both."""
    value_a: float | None
    """Percent over the common items."""
    value_b: float | None
    test: PairedTest | None
    """None when refused, or when no item is common."""
    p_holm: float | None = None
    """``test.p`` adjusted over all tests of the comparison."""
    detectable: float | None = None
    """Smallest true difference (points) that these items show with 80 % power, at the spread seen."""
    comparability: Comparability
    refused: tuple[str, ...] = ()
    """Why no difference is given."""
    flips: tuple[Flip, ...] = ()
    cost: Mapping[str, tuple[float | None, float | None]]
    """NFE, tokens per forward and tokens per second on the common items."""
    base: str = ""
    """Data set name without the template, for comparisons over templates."""
    template: str | None = None
    floor: float | None = None
    """Noise floor in percent of items (``records.noise``); None where nobody measured one."""
    floor_source: str = ""

    @property
    def labels(self) -> list[str]:
        """What else differs, to stand beside the number."""
        return [reason for reason in self.comparability.reasons if reason not in self.refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two models of two runs, benchmark by benchmark."""

    a: str
    b: str
    benchmarks: tuple[BenchmarkComparison, ...]
    missing: tuple[str, ...]
    """Data sets that only one of the runs has, and records that could not be read."""
    unequal: tuple[Inequality, ...]
    """Training budgets that differ (fairness ledger)."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values; differences in percent points."""
        record = dataclasses.asdict(self)
        for entry, bench in zip(record["benchmarks"], self.benchmarks, strict=True):
            entry["labels"], entry["notes"] = bench.labels, bench.comparability.notes
            entry["comparable"] = bench.comparability.comparable
            if bench.test is not None:
                entry["test"] |= {key: 100 * entry["test"][key] for key in ("delta", "low", "high")}
        return record


def verdict(bench: BenchmarkComparison) -> str:
    """Return in words what the comparison shows; the adjusted p decides, and no difference counts below the floor."""
    if bench.refused:
        return "not comparable"
    if bench.test is None:
        return "no common item"
    p = bench.test.p if bench.p_holm is None else bench.p_holm
    if p >= ALPHA:
        return "within noise"
    if bench.floor is not None and abs(100 * bench.test.delta) <= bench.floor:
        return "within the noise floor"
    return "B better" if bench.test.delta > 0 else "A better"


def compare_runs(
    a: Run,
    b: Run,
    *,
    model_a: str | None = None,
    model_b: str | None = None,
    benches: Collection[str] = (),
    allow: Collection[str] = (),
) -> Comparison:
    """Compare one model of ``a`` with one of ``b`` on their common data sets (or on ``benches``).

    Raises ``UsageError`` for a model or data set that is not there, or when a run has several models and none is
    named.
    """
    left, right = pick_model(a, model_a, "--model-a"), pick_model(b, model_b, "--model-b")
    sets_a = {dataset for model, dataset in a.results() if model == left}
    sets_b = {dataset for model, dataset in b.results() if model == right}
    for name in benches:
        if name not in sets_a & sets_b:
            raise unknown("data set in both runs", name, sets_a & sets_b)
    common = sorted(set(benches) or sets_a & sets_b)
    missing = [] if benches else [f"{name}: only in {a.run_id}" for name in sorted(sets_a - sets_b)]
    missing += [] if benches else [f"{name}: only in {b.run_id}" for name in sorted(sets_b - sets_a)]
    found: list[BenchmarkComparison] = []
    for dataset in common:
        results, troubles = compare_results(a, b, left, right, dataset, allow)
        found.extend(results)
        missing.extend(troubles)
    return Comparison(
        a=f"{a.run_id}:{left}",
        b=f"{b.run_id}:{right}",
        benchmarks=tuple(_adjusted(found)),
        missing=tuple(missing),
        unequal=tuple(unequal(training_budget(a.manifest, left), training_budget(b.manifest, right))),
    )


def compare_results(
    a: Run, b: Run, model_a: str, model_b: str, dataset: str, allow: Collection[str] = ()
) -> tuple[list[BenchmarkComparison], list[str]]:
    """Compare one data set: a row for the verdicts, a second one where credit is graded; and unreadable records."""
    file_a, file_b = a.items(model_a, dataset), b.items(model_b, dataset)
    pairs = pair_items(file_a.records, file_b.records)
    settings_a, settings_b = a.settings(model_a, dataset), b.settings(model_b, dataset)
    comparability = _with_items(compare_settings(settings_a, settings_b), pairs, settings_a, settings_b)
    refused = tuple(found.reason for found in comparability.refused(allow))
    shared = BenchmarkComparison(
        dataset=dataset,
        metric=str(settings_a.get("metric") or "accuracy"),
        n=pairs.n,
        value_a=None,
        value_b=None,
        test=None,
        comparability=comparability,
        refused=refused,
        cost=_costs(pairs),
        base=str(settings_a.get("dataset") or dataset),
        template=settings_a.get("task_template"),
    )
    troubles = [f"{p.path}:{p.line}: {p.kind}: {p.message}" for p in (*file_a.problems, *file_b.problems)]
    if refused or not pairs.n:
        return [shared], troubles
    rows = [_tested(shared, pairs, graded=False)]
    if pairs.graded:
        rows.append(_tested(dataclasses.replace(shared, metric=a.graded_metric(dataset)), pairs, graded=True))
    return rows, troubles


def pick_model(run: Run, name: str | None, option: str) -> str:
    """Return the model of ``run`` called ``name``, or its only one."""
    models = sorted({model for model, _ in run.results()})
    if name is not None:
        if name not in models:
            raise unknown(f"model in {run.run_id}", name, models)
        return name
    if len(models) != 1:
        raise UsageError(
            f"{run.folder} holds {len(models)} models; which one is compared?",
            seen=", ".join(models) or "none",
            remedy=f"{option} NAME",
        )
    return models[0]


def _tested(shared: BenchmarkComparison, pairs: Pairs, *, graded: bool) -> BenchmarkComparison:
    a, b = pairs.credits(graded=graded)
    questions = pairs.questions
    if graded or questions is not None:
        test = paired_bootstrap(a, b, clusters=questions)
    else:
        test = paired_binary([value == 1.0 for value in a], [value == 1.0 for value in b])
    spread = float(np.std(np.subtract(b, a)))
    return dataclasses.replace(
        shared,
        value_a=100 * float(np.mean(a)),
        value_b=100 * float(np.mean(b)),
        test=test,
        detectable=100 * detectable_effect(pairs.n, spread) if spread > 0 else None,
        flips=() if graded else tuple(pairs.flips()),
    )


def _with_items(
    found: Comparability, pairs: Pairs, settings_a: Mapping[str, Any], settings_b: Mapping[str, Any]
) -> Comparability:
    """Add what only the items can tell: different item sets and different prompts as received."""
    more: list[Difference] = []
    known = [difference for difference in found.differences if difference.name != "content_hash"]
    if not pairs.n:
        more.append(_items_difference(pairs, REFUSE, "items differ: none is scored in both runs"))
    elif pairs.only_a or pairs.only_b:
        reason = f"items differ: {pairs.n} paired, {pairs.only_a} only in the first, {pairs.only_b} only in the second"
        more.append(_items_difference(pairs, LABEL, reason))
    other = pairs.other_prompts
    if other:
        families = settings_a.get("family"), settings_b.get("family")
        severity = LABEL if families[0] != families[1] else REFUSE  # families bring their own chat templates
        reason = f"prompt as the model received it differs on {other} of {pairs.n} items"
        more.append(Difference("rendered_prompts", severity, None, None, reason))
    return Comparability((*known, *more))


def _items_difference(pairs: Pairs, severity: str, reason: str) -> Difference:
    return Difference("items", severity, pairs.n + pairs.only_a, pairs.n + pairs.only_b, reason)


def _costs(pairs: Pairs) -> dict[str, tuple[float | None, float | None]]:
    left, right = cost_of(pairs.a), cost_of(pairs.b)
    return {
        "nfe": (left.nfe, right.nfe),
        "tpf": (left.tokens_per_forward, right.tokens_per_forward),
        "tps": (left.tokens_per_second, right.tokens_per_second),
    }


def _adjusted(found: list[BenchmarkComparison]) -> list[BenchmarkComparison]:
    tested = [bench for bench in found if bench.test is not None]
    adjusted = iter(holm([bench.test.p for bench in tested if bench.test is not None]))
    return [dataclasses.replace(b, p_holm=next(adjusted)) if b.test is not None else b for b in found]
