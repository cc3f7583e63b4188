"""What a sweep shows: quality against forwards, undominated settings, AUP per method, and how prompts change the order.

Works on the item records of a finished run; runs nothing. A curve is the settings of one method that differ in speed
only (steps, threshold, factor); AUP is given for curves of at least two points, with ``y_max`` the best accuracy of
all settings on that data set and prompt.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from dare_eval.records.items import ItemRecord
from dare_eval.records.summary import ResultRow, is_scored
from dare_eval.report.aup import Setting as AupSetting
from dare_eval.report.aup import aup, aup_interval, points_of
from dare_eval.report.pareto import pareto


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting on one data set in one template."""

    setting: str
    curve: str
    dataset: str
    """Name in the run, the template included."""
    base: str
    """The data set without the template."""
    template: str | None
    row: ResultRow
    records: Sequence[ItemRecord]


@dataclass(frozen=True, slots=True)
class Curve:
    """AUP of one method on one data set."""

    dataset: str
    curve: str
    points: int
    value: float
    low: float | None
    high: float | None
    """95 % bootstrap over items; None where the settings did not answer the same items."""
    kept: int
    beyond: bool
    """The fastest setting loses more than AUP tolerates, so it is not part of the area."""


@dataclass(frozen=True, slots=True)
class Templates:
    """One setting over the templates of a data set, in percent."""

    base: str
    setting: str
    templates: int
    mean: float
    spread: float
    """Largest minus smallest score."""
    best_rank: int
    worst_rank: int
    """Rank among the settings (1 is best) in the template where it stands highest, lowest; ties share the better."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether the templates of a data set order the settings alike."""

    base: str
    templates: int
    tau: float | None
    """Kendall's tau-b, mean over pairs of templates; 1 is the same order; None where a template ties everything."""
    same_best: bool
    """Every template has the same setting (or tie) on top."""


def marks(points: Sequence[Point]) -> list[bool]:
    """Tell for each point whether it is undominated among those of its data set; without score or NFE it is not."""
    found: dict[int, bool] = {}
    for dataset in dict.fromkeys(point.dataset for point in points):
        known = [
            (number, (point.row.nfe, point.row.value))
            for number, point in enumerate(points)
            if point.dataset == dataset and point.row.nfe is not None and point.row.value is not None
        ]
        flags = pareto([(float(nfe or 0.0), float(value or 0.0)) for _, (nfe, value) in known])
        found |= dict(zip((number for number, _ in known), flags, strict=True))
    return [found.get(number, False) for number in range(len(points))]


def curves(points: Sequence[Point]) -> list[Curve]:
    """Return AUP of every method with at least two points, in order of appearance."""
    found = []
    for dataset in dict.fromkeys(point.dataset for point in points):
        here = [point for point in points if point.dataset == dataset and _usable(point)]
        y_max = max((float(point.row.value or 0.0) for point in here), default=0.0)
        for name in dict.fromkeys(point.curve for point in here):
            members = [point for point in here if point.curve == name]
            if len(members) >= 2 and y_max > 0:
                found.append(_curve(dataset, name, members, y_max))
    return found


def over_templates(points: Sequence[Point]) -> tuple[list[Templates], list[Stability]]:
    """Return mean and spread per setting and the stability of the order, for data sets with several templates.

    Only settings that every template scored are looked at.
    """
    rows, stability = [], []
    for base in dict.fromkeys(point.base for point in points):
        names = list(dict.fromkeys(point.dataset for point in points if point.base == base))
        table = {
            setting: {
                p.dataset: float(p.row.value) for p in points if _is(p, base, setting) and p.row.value is not None
            }
            for setting in dict.fromkeys(point.setting for point in points if point.base == base)
        }
        whole = {setting: values for setting, values in table.items() if len(values) == len(names)}
        if len(names) < 2 or not whole:
            continue
        ranks = {name: _ranks({setting: values[name] for setting, values in whole.items()}) for name in names}
        for setting, values in whole.items():
            own = [ranks[name][setting] for name in names]
            mean, spread = statistics.fmean(values.values()), max(values.values()) - min(values.values())
            rows.append(Templates(base, setting, len(names), mean, spread, min(own), max(own)))
        stability.append(_stability(base, names, whole, ranks))
    return rows, stability


def to_dict(points: Sequence[Point]) -> dict[str, Any]:
    """Return the numbers of a sweep as JSON-ready values."""
    rows, stability = over_templates(points)
    listed = [
        {
            "setting": point.setting,
            "curve": point.curve,
            "dataset": point.dataset,
            "template": point.template,
            "pareto": mark,
            **{name: value for name, value in point.row.to_dict().items() if name != "dataset"},
        }
        for point, mark in zip(points, marks(points), strict=True)
    ]
    return {
        "points": listed,
        "aup": [asdict(curve) for curve in curves(points)],
        "templates": [asdict(row) for row in rows],
        "stability": [asdict(one) for one in stability],
    }


def _is(point: Point, base: str, setting: str) -> bool:
    return point.base == base and point.setting == setting


def _usable(point: Point) -> bool:
    return point.row.value is not None and bool(point.row.tpf)


def _curve(dataset: str, name: str, members: Sequence[Point], y_max: float) -> Curve:
    measured = [(float(point.row.tpf or 0.0), float(point.row.value or 0.0)) for point in members]
    settings = _aligned(members)
    if settings is not None:
        measured = points_of(settings)
    area = aup(measured, y_max)
    low, high = aup_interval(settings, y_max) if settings is not None else (None, None)
    return Curve(dataset, name, len(members), area.value, low, high, area.kept, area.beyond)


def _aligned(members: Sequence[Point]) -> list[AupSetting] | None:
    """Return the members' items in one order; None unless all answered the same items and counted their cost."""
    tables = [{record.item_id: record for record in point.records if is_scored(record)} for point in members]
    names = sorted(tables[0])
    if not names or any(sorted(table) != names for table in tables):
        return None
    found = []
    for table in tables:
        records = [table[name] for name in names]
        if any(record.nfe is None or record.generated_tokens is None for record in records):
            return None
        found.append(
            AupSetting(
                correct=[bool(record.correct) for record in records],
                generated_tokens=[float(record.generated_tokens or 0) for record in records],
                nfe=[float(record.nfe or 0) for record in records],
            )
        )
    return found


def _ranks(values: Mapping[str, float]) -> dict[str, int]:
    return {name: 1 + sum(other > value for other in values.values()) for name, value in values.items()}


def _stability(
    base: str, names: Sequence[str], whole: Mapping[str, Mapping[str, float]], ranks: Mapping[str, Mapping[str, int]]
) -> Stability:
    from scipy.stats import kendalltau

    columns = {name: [values[name] for values in whole.values()] for name in names}
    pairs = combinations(names, 2) if len(whole) > 1 else ()
    taus = [float(kendalltau(columns[a], columns[b]).statistic) for a, b in pairs]
    tops = [frozenset(setting for setting, rank in ranks[name].items() if rank == 1) for name in names]
    known = bool(taus) and all(tau == tau for tau in taus)  # NaN where a template ties everything
    return Stability(base, len(names), statistics.fmean(taus) if known else None, bool(frozenset.intersection(*tops)))
