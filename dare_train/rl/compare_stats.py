"""What a comparison found: pooled scores with intervals, paired tests with Holm, ties, stability, and the ledger.

Scores are pooled over seeds; intervals and tests resample items, a seed being a repeat of its item. Differences are
against the row's own base on the same items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dare_eval.records.intervals import bootstrap, wilson
from dare_eval.records.ledger import TOLERANCE, Budget
from dare_eval.records.manifest import read_manifest
from dare_eval.records.runs import Run, load_run
from dare_eval.records.significance import PairedTest, holm, paired_bootstrap
from dare_eval.records.summary import credit, is_scored
from dare_eval.report.ties import tie_groups
from dare_train.engine.metrics import read_metrics
from dare_train.rl.compare_jobs import Done

Item = tuple[int, str]
"""Seed and item id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row in one setting of the evaluation, over all its seeds."""

    row: str
    setting: str
    """Model name in the evaluation config, such as a number of decoding steps."""
    dataset: str
    value: float
    low: float
    high: float
    n: int
    seeds: dict[int, float]
    """Score of each seed, percent."""
    gain: dict[str, Any] | None
    """Paired test against the base: delta, low, high (points), p, p_holm; None for a base."""
    group: int | None = None
    """Ties share it; 1 is the best group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How steady the training of a row was, by its held-out curve."""

    largest_fall: float | None
    """Largest fall of the held-out score after its best, in points, over seeds; None without a curve."""
    collapsed: float
    """Share of seeds in which a collapse was noticed."""
    curves: dict[int, list[tuple[int, float]]]


def credits_of(run: Run) -> dict[tuple[str, str], dict[str, float]]:
    """Return the verdict of each scored item by (setting, data set)."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for model, dataset in run.results():
        items = [record for record in run.items(model, dataset).records if is_scored(record)]
        found[model, dataset] = {record.item_id: float(credit(record, graded=False)) for record in items}
    return found


def collect_lines(done: Sequence[Done], base_of: Mapping[str, str]) -> list[Line]:
    """Return the lines of all rows; ``base_of`` names the base row of each row."""
    runs: dict[str, dict[int, dict[tuple[str, str], dict[str, float]]]] = {}
    for job in done:
        runs.setdefault(job.row, {})[job.seed] = credits_of(load_run(Path(job.evaluation)))
    lines, pooled = [], {}
    for row, seeds in runs.items():
        for key in next(iter(seeds.values())):
            values = {
                (seed, item): value for seed, found in seeds.items() for item, value in found.get(key, {}).items()
            }
            pooled[row, *key] = values
            each = {seed: 100 * _mean(list(found[key].values())) for seed, found in seeds.items() if key in found}
            base = runs.get(base_of.get(row, ""), {})
            gain = _gain(values, next(iter(base.values())).get(key, {})) if base and row in base_of else None
            lines.append(_line(row, key, values, each, gain))
    return _grouped(_adjusted(lines), pooled)


def _line(
    row: str, key: tuple[str, str], values: dict[Item, float], each: dict[int, float], gain: PairedTest | None
) -> Line:
    numbers = list(values.values())
    if len(each) == 1:
        interval = wilson(int(sum(numbers)), len(numbers))
    else:
        interval = bootstrap(numbers, clusters=[item for _, item in values])
    test = None if gain is None else {**asdict(gain), **{k: 100 * getattr(gain, k) for k in ("delta", "low", "high")}}
    return Line(
        row=row,
        setting=key[0],
        dataset=key[1],
        value=100 * interval.value,
        low=100 * interval.low,
        high=100 * interval.high,
        n=interval.n,
        seeds=each,
        gain=test,
    )


def _gain(values: Mapping[Item, float], base: Mapping[str, float]) -> PairedTest | None:
    """Return the paired test of all seeds against the base's one result per item."""
    common = sorted(key for key in values if key[1] in base)
    if not common:
        return None
    left, right = [base[item] for _, item in common], [values[key] for key in common]
    return paired_bootstrap(left, right, clusters=[item for _, item in common])


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with p adjusted over all tests of the comparison."""
    import dataclasses

    adjusted = iter(holm([line.gain["p"] for line in lines if line.gain]))
    return [
        dataclasses.replace(line, gain={**line.gain, "p_holm": next(adjusted)}) if line.gain else line for line in lines
    ]


def _grouped(lines: Sequence[Line], pooled: Mapping[tuple[str, str, str], dict[Item, float]]) -> list[Line]:
    """Return the lines with their tie groups, rows of one setting compared on the same seeds and items."""
    import dataclasses

    found: list[Line] = []
    for key in dict.fromkeys((line.setting, line.dataset) for line in lines):
        mine = [line for line in lines if (line.setting, line.dataset) == key]
        order = sorted((line.row for line in mine), key=lambda row: -_mean(list(pooled[row, *key].values())))

        def test(a: str, b: str, key: tuple[str, str] = key) -> float | None:
            left, right = _spread(pooled[a, *key], pooled[b, *key])
            common = sorted(left.keys() & right.keys())
            if not common:
                return None
            items = [item for _, item in common]
            return paired_bootstrap([left[k] for k in common], [right[k] for k in common], clusters=items).p

        groups = tie_groups(order, test)
        found += [
            dataclasses.replace(line, group=groups[line.row].group if line.row in groups else None) for line in mine
        ]
    return found


def _spread(a: dict[Item, float], b: dict[Item, float]) -> tuple[dict[Item, float], dict[Item, float]]:
    """Return both with the seeds of the one that has more: a base has one result for all seeds."""
    seeds = [{seed for seed, _ in values} for values in (a, b)]
    if seeds[0] == seeds[1]:
        return a, b
    wide = a if len(seeds[0]) > len(seeds[1]) else b
    narrow = {item: value for (_, item), value in (b if wide is a else a).items()}
    filled = {(seed, item): narrow[item] for seed, item in wide if item in narrow}
    return (a, filled) if wide is a else (filled, b)


def stability_of(done: Sequence[Done]) -> dict[str, Stability]:
    """Return the stability of every trained row."""
    found: dict[str, Stability] = {}
    for row in dict.fromkeys(job.row for job in done if job.training):
        mine = [job for job in done if job.row == row and job.training]
        curves = {job.seed: heldout_curve(Path(str(job.training))) for job in mine}
        falls = [fall for curve in curves.values() if (fall := largest_fall([score for _, score in curve])) is not None]
        collapsed = [float(bool(_causes(Path(str(job.training))))) for job in mine]
        worst = max(falls) if falls else None
        found[row] = Stability(
            largest_fall=None if worst is None else 100 * worst, collapsed=_mean(collapsed), curves=curves
        )
    return found


def heldout_curve(folder: Path) -> list[tuple[int, float]]:
    """Return (step, held-out score) of a run; empty when it held nothing out."""
    lines = read_metrics(folder / "metrics.jsonl")
    return [(line["step"], line["heldout_exact"]) for line in lines if line.get("heldout_exact") is not None]


def largest_fall(scores: Sequence[float]) -> float | None:
    """Return the largest fall of a score below the best one before it; None without scores."""
    best, fall = 0.0, 0.0
    for score in scores:
        best = max(best, score)
        fall = max(fall, best - score)
    return fall if scores else None


def _causes(folder: Path) -> dict[str, int]:
    from dare_eval.records.atomic import read_json

    newest = sorted((folder / "checkpoints").glob("step_*/progress.json"))
    if not newest:
        return {}
    causes: dict[str, int] = read_json(newest[-1], "progress")["algorithm"].get("collapse", {}).get("causes", {})
    return causes


def ledger(done: Sequence[Done]) -> dict[str, dict[str, float | None]]:
    """Return what rows spent per seed on average, and only those entries that are not equal over all trained rows."""
    spent: dict[str, dict[str, list[float]]] = {}
    for job in done:
        if job.training is None:
            continue
        budget = read_manifest(Path(job.training)).budget or Budget()
        values = {**budget.to_dict(), "cpu_s": job.cpu_s}
        for name, value in values.items():
            if value is not None:
                spent.setdefault(name, {}).setdefault(job.row, []).append(float(value))
    rows = list(dict.fromkeys(job.row for job in done if job.training))
    table = {name: {row: _mean(by[row]) if row in by else None for row in rows} for name, by in spent.items()}
    return {name: by for name, by in table.items() if not _equal(list(by.values()))}


def _equal(values: Sequence[float | None]) -> bool:
    known = [value for value in values if value is not None]
    return len(known) == len(values) and max(known) - min(known) <= TOLERANCE * max(map(abs, known))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
