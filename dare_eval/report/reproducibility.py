"""Reproducibility report: what ran, with what, and whether it gives the recorded numbers.

``dare-eval report RUN... --against BASELINE`` writes it as Markdown, HTML and JUnit. Nothing in it depends on when or
where the report is made, so the same run gives the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import RunManifest
from dare_eval.records.run_rows import RunRow, run_rows
from dare_eval.records.runs import Run
from dare_eval.records.summary import ResultRow
from dare_eval.report.document import Document, Part, Table
from dare_eval.report.judge import Change, Judgement, environment_changes, interval, judge_run
from dare_eval.report.recorded import Baseline, flat_environment, outcome_hashes

_UNKNOWN = "not recorded"


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run, judged."""

    run: Run
    baseline: Baseline | None
    judgements: tuple[Judgement, ...]
    environment: tuple[Change, ...]
    """Environment entries that are not as recorded."""
    outcomes: dict[tuple[str, str], str]

    @property
    def bad(self) -> list[Judgement]:
        """Numbers that are off or missing."""
        return [one for one in self.judgements if not one.good]


def report_run(run: Run, baseline: Baseline | None) -> RunReport:
    """Judge every number of ``run`` against ``baseline``; raises ``DataError`` when its records cannot be read."""
    outcomes = outcome_hashes(run)
    rows: list[RunRow] = run_rows(run)
    changed = environment_changes(baseline.environment, flat_environment(run)) if baseline else []
    return RunReport(run, baseline, tuple(judge_run(rows, outcomes, baseline)), tuple(changed), outcomes)


def verdict_of(reports: Sequence[RunReport]) -> str:
    """Return the whole report in one word: off, within interval, match, or not compared."""
    verdicts = {one.verdict for report in reports for one in report.judgements}
    if any(report.bad for report in reports):
        return "off"
    for word in ("within interval", "match"):
        if word in verdicts:
            return word
    return "not compared"


def renamed(reports: Sequence[RunReport]) -> list[str]:
    """Return a sentence per model that was judged against the numbers of a model with another name."""
    found = {
        (report.run.run_id, one.model, one.recorded.origin): None
        for report in reports
        for one in report.judgements
        if one.recorded is not None and one.recorded.origin != one.model
    }
    return [
        f"{run}: model names differ: '{model}' is judged against numbers recorded for '{recorded}'"
        for run, model, recorded in found
    ]


def titles(reports: Sequence[RunReport]) -> list[str]:
    """Return a title per run: its id, numbered where several runs share one."""
    ids = [report.run.run_id for report in reports]
    seen: Counter[str] = Counter()
    found = []
    for name in ids:
        seen[name] += 1
        several = f" (no. {seen[name]} of {ids.count(name)} runs with this id)" if ids.count(name) > 1 else ""
        found.append(name + several)
    return found


def to_document(reports: Sequence[RunReport]) -> Document:
    """Return the report on all runs; run by run, numbers first."""
    lead = [f"Verdict: {verdict_of(reports)}"]
    named = list(zip(titles(reports), reports, strict=True))
    lead += [
        f"{title}: {_counts(report)}"
        + (f", against {report.baseline.name}" if report.baseline else "; nothing to compare with")
        for title, report in named
    ]
    lead += renamed(reports)
    return Document("Reproducibility report", lead, [part for title, one in named for part in _parts(title, one)])


def _counts(report: RunReport) -> str:
    words = [one.verdict for one in report.judgements]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words))) or "no result"


def _parts(title: str, report: RunReport) -> list[Part]:
    run = report.run
    parts = [Part(f"Run {title}", [*_status(run), _numbers(report.judgements)])]
    changed = [(one, change) for one in report.judgements for change in one.changed]
    if changed:
        rows = [[one.model, one.dataset, change.name, change.recorded, change.now] for one, change in _once(changed)]
        columns = ["model", "benchmark", "setting", "recorded", "now"]
        parts.append(Part("Measured differently", [Table(columns, rows)], level=3))
    if report.environment:
        rows = [[change.name, change.recorded, change.now] for change in report.environment]
        parts.append(Part("Environment entries that changed", [Table(["entry", "recorded", "now"], rows)], level=3))
    if run.manifest is None:
        return [*parts, Part("What ran", [f"Unknown: {problem}" for problem in run.problems], level=3)]
    parts.append(Part("What ran", [_models(run.manifest), _datasets(run.manifest, report.outcomes)], level=3))
    parts.append(Part("Decode settings", [_specs(run.manifest)], level=3))
    rows = [[name, value] for name, value in sorted(flat_environment(run).items())]
    rows += [[f"seed {name}", str(value)] for name, value in sorted(run.manifest.seeds.items())]
    parts.append(Part("Environment", [Table(["entry", "value"], rows)], level=3))
    return [*parts, Part("Spent", [_budget(run.manifest.budget)], level=3)]


def _once(changed: Sequence[tuple[Judgement, Change]]) -> list[tuple[Judgement, Change]]:
    """Return each change of a model on a data set once, not once a metric."""
    found = {(one.model, one.dataset, change.name): (one, change) for one, change in changed}
    return list(found.values())


def _status(run: Run) -> list[str]:
    times = f"started {run.started or _UNKNOWN}"
    if run.manifest is not None:
        times += f", finished {run.manifest.finished or _UNKNOWN}"
    return [f"{run.status}, {times}, {'made by plain OpenCompass' if run.origin == 'opencompass' else 'made by dare'}"]


def _numbers(judgements: Sequence[Judgement]) -> Table:
    columns = ["model", "benchmark", "metric", "verdict", "score", "95 % interval", "n", "recorded", "why"]
    rows = []
    for one in judgements:
        score, bounds, n, *cost = _measured(one)
        rows.append(
            [one.model, one.dataset, one.metric, one.verdict, score, bounds, n, _recorded(one), _reason(one), *cost]
        )
    return Table([*columns, "NFE", "tok/s"], rows)


def _measured(one: Judgement) -> list[str]:
    if one.found is None:
        return ["-", "-", "0", "-", "-"]
    row = one.found.row
    low, high = interval(row)
    bounds = "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"
    score = "-" if row.value is None else f"{row.value:.2f}"
    return [score, bounds, _n(row), _cost(row.nfe), _cost(row.tps)]


def _recorded(one: Judgement) -> str:
    if one.recorded is None:
        return "-"
    known = f" (n = {one.recorded.n})" if one.recorded.n is not None else ""
    return f"{one.recorded.value:.{one.recorded.decimals if one.recorded.decimals is not None else 2}f}{known}"


def _reason(one: Judgement) -> str:
    labels = one.found.row.labels if one.found is not None else []
    return "; ".join([one.reason, *labels])


def _models(manifest: RunManifest) -> Table:
    columns = ["model", "checkpoint", "family", "weight hash", "parent", "parent hash", "algorithm"]
    rows = [
        [one.name, one.model_id, one.family, one.weight_hash or _UNKNOWN]
        + [text or "-" for text in (one.parent, one.parent_hash, one.algorithm)]
        for one in manifest.models
    ]
    return Table(columns, rows)


def _datasets(manifest: RunManifest, outcomes: dict[tuple[str, str], str]) -> Table:
    columns = ["benchmark", "data set", "split", "items", "prompt hash", "content hash", "scorer", "verdict hash"]
    rows = []
    for one in manifest.datasets:
        found = [f"{model}: {value}" for (model, dataset), value in sorted(outcomes.items()) if dataset == one.name]
        items = _UNKNOWN if one.expected is None else str(one.expected)
        items += f" ({one.subset})" if one.subset else ""
        hashes = [text or _UNKNOWN for text in (one.prompt_hash, one.content_hash, one.scorer)]
        rows.append([one.name, one.dataset, one.split, items, *hashes, "; ".join(found) or "-"])
    return Table(columns, rows)


def _specs(manifest: RunManifest) -> Table:
    """Return one column per distinct spec; data sets that share one stand together."""
    columns: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for model in manifest.models:
        for name, spec in sorted(model.decode_specs.items()):
            key = json.dumps([model.name, spec], sort_keys=True, default=str)
            columns.setdefault(key, ([], spec))[0].append(f"{model.name} on {name}")
    keys = sorted({key for _, spec in columns.values() for key, value in spec.items() if value is not None})
    rows = [[key, *[_value(spec.get(key)) for _, spec in columns.values()]] for key in keys]
    return Table(["setting", *[", ".join(names) for names, _ in columns.values()]], rows)


def _budget(budget: Budget) -> Table:
    rows = [[name, _UNKNOWN if value is None else f"{value:,.6g}"] for name, value in budget.to_dict().items()]
    return Table(["entry", "spent"], [row for row in rows if row[1] != _UNKNOWN] or [["budget", _UNKNOWN]])


def _value(value: object) -> str:
    return "-" if value in (None, ()) or value == [] else str(value)


def _n(row: ResultRow) -> str:
    return str(row.n) if row.expected in (None, row.n) else f"{row.n} of {row.expected}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
