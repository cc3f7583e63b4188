"""A comparison over several equivalent prompt templates of one data set: mean, spread, and whether the order holds.

Rankings of decoding methods change with the template (arXiv 2606.29228), so a claim of equal quality needs all of
them. Works on comparisons that exist; running the templates is the configuration's business.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from dare_eval.errors import IncompleteError
from dare_eval.records.compare import BenchmarkComparison


@dataclass(frozen=True, slots=True)
class OverTemplates:
    """Difference ``b - a`` in points over the templates of one data set and metric."""

    dataset: str
    metric: str
    templates: tuple[str, ...]
    mean: float
    spread: float
    """Largest minus smallest difference."""
    stable: float
    """Share of templates whose difference has the sign of the mean (a difference of 0 has none)."""


def over_templates(benchmarks: Iterable[BenchmarkComparison], at_least: int) -> list[OverTemplates]:
    """Return one row per data set and metric; raises ``IncompleteError`` when one has fewer templates."""
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for bench in benchmarks:
        if bench.test is not None:
            name = bench.template or bench.dataset
            groups.setdefault((bench.base, bench.metric), {})[name] = 100 * bench.test.delta
    short = [f"{dataset} ({len(found)})" for (dataset, _), found in groups.items() if len(found) < at_least]
    if short or not groups:
        raise IncompleteError(
            f"fewer than {at_least} templates compared",
            seen=", ".join(sorted(set(short))) or "no comparable benchmark",
            remedy="evaluate both models on all templates of the data set first",
        )
    return [_row(dataset, metric, found) for (dataset, metric), found in groups.items()]


def _row(dataset: str, metric: str, deltas: dict[str, float]) -> OverTemplates:
    mean = statistics.fmean(deltas.values())
    agree = sum(delta * mean > 0 for delta in deltas.values()) / len(deltas)
    spread = max(deltas.values()) - min(deltas.values())
    return OverTemplates(dataset, metric, tuple(sorted(deltas)), mean, spread, agree)
