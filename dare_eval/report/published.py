"""Published numbers: a run judged against a card, and which differences of a published table are more than noise.

A published percentage has no interval and no item records. With the number of items it is a share of, Wilson's
interval and an unpaired test are possible; both are wide, because only paired items (``records.compare``) can do
better. A graded score is treated as a share of its items, which is the widest its noise can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import DataError
from dare_eval.presets.cards import Card, CardTable, benchmarks, items_of, tables
from dare_eval.records.intervals import wilson
from dare_eval.records.run_rows import RunRow, run_rows
from dare_eval.records.runs import Run
from dare_eval.records.significance import holm
from dare_eval.report.recorded import Baseline, Recorded

ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDifference:
    """One published score against the base of its table; percent and points."""

    benchmark: str
    column: str
    score: float
    base: float
    n: int | None
    """Items assumed; the smallest number the sources allow."""
    low: float | None
    high: float | None
    """95 % interval of the difference (Newcombe 1998, independent samples)."""
    p: float | None
    p_holm: float | None
    """Adjusted over all differences of the table."""
    depends: bool
    """The verdict changes with the number of items that the source may have used."""
    below: tuple[str, ...]
    """Trivial answers that score higher."""

    @property
    def delta(self) -> float:
        """Return the difference in points."""
        return self.score - self.base

    @property
    def outside(self) -> bool | None:
        """Whether the difference is more than noise; None when nobody says how many items there were."""
        return None if self.p_holm is None else self.p_holm < ALPHA and not self.depends


def published_tables() -> dict[str, CardTable]:
    """Return the published tables that stand in cards, by name."""
    return dict(tables())


def differences(table: CardTable) -> list[PublishedDifference]:
    """Return every score of ``table`` against its base column, in the table's order."""
    pairs = [(bench, column) for bench in table.rows for column in table.columns if column != table.base]
    fewest = {pair: min(items_of(pair[0]), default=None) for pair in pairs}
    most = {pair: max(items_of(pair[0]), default=None) for pair in pairs}
    adjusted, lenient = _holm(table, pairs, fewest), _holm(table, pairs, most)
    found = []
    for bench, column in pairs:
        score, base, n = _score(table, bench, column), _score(table, bench, table.base), fewest[bench, column]
        low, high = unpaired_interval(score / 100, base / 100, n) if n else (None, None)
        p, strict = adjusted[bench, column]
        _, loose = lenient[bench, column]
        found.append(
            PublishedDifference(
                benchmark=bench,
                column=column,
                score=score,
                base=base,
                n=n,
                low=None if low is None else 100 * low,
                high=None if high is None else 100 * high,
                p=p,
                p_holm=strict,
                depends=strict is not None and loose is not None and (strict < ALPHA) != (loose < ALPHA),
                below=tuple(name for name, value in below_trivial(bench, score)),
            )
        )
    return found


def below_trivial(benchmark: str, score: float) -> list[tuple[str, float]]:
    """Return the trivial answers (name, percent) that score more than ``score`` on ``benchmark``."""
    known = benchmarks().get(benchmark, {}).get("trivial", {})
    return [(name, float(value)) for name, value in known.items() if score < value]


def unpaired_p(a: float, b: float, n: int) -> float:
    """Return the two-sided p of two shares of ``n`` items each, as independent samples (pooled z test)."""
    from scipy.special import ndtr

    pooled = (a + b) / 2
    spread = math.sqrt(2 * pooled * (1 - pooled) / n)
    return 1.0 if spread == 0 else 2 * float(ndtr(-abs(a - b) / spread))


def unpaired_interval(a: float, b: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of ``a - b``, shares of ``n`` items each (Newcombe 1998, method 10: Wilson's bounds)."""
    (low_a, high_a), (low_b, high_b) = _wilson(a, n), _wilson(b, n)
    down = math.hypot(a - low_a, high_b - b)
    up = math.hypot(high_a - a, b - low_b)
    return a - b - down, a - b + up


def published_interval(score: float, n: Sequence[int]) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of a published percentage over the fewest of ``n`` items; None without ``n``."""
    if not n:
        return None
    low, high = _wilson(score / 100, min(n))
    return 100 * low, 100 * high


def baseline_of_card(card: Card, run: Run) -> Baseline:
    """Return the card as what ``run`` is judged against; raises ``DataError`` when the run cannot be what it measures.

    The run's row is the card's metric, or the headline one, of the model and benchmark that are called as on the card,
    else of the run's only one (its average, where the benchmark has several data sets).
    """
    rows = [found for found in run_rows(run) if not found.row.metric.startswith("stock ")]
    chosen = _row_of(card, rows)
    if chosen is None:
        raise DataError(
            f"nothing in this run is what card '{card.name}' measures",
            seen=f"{run.folder}: " + ", ".join(sorted({f"{one.row.dataset} {one.row.metric}" for one in rows})),
            remedy=f"dare-eval reproduce {card.name}",
        )
    row, weights = chosen.row, str(chosen.settings.get("weight_hash"))
    settings: dict[str, Any] = {"decode_spec": card.spec} if card.spec else {}
    if card.weights is not None:  # the card holds the start of the hash
        settings["weight_hash"] = weights if weights.startswith(card.weights) else card.weights
    number = Recorded(
        model=row.model,
        dataset=row.dataset,
        metric=row.metric,
        value=card.score,
        decimals=card.decimals,
        settings=settings,
        partial=True,
        source=card.source,
        called=card.model,
    )
    return Baseline(name=f"card {card.name} ({card.source})", numbers=(number,), whole=False)


def _row_of(card: Card, found: Sequence[RunRow]) -> RunRow | None:
    rows = [one for one in found if one.row.model == card.model] or list(found)
    rows = [one for one in rows if one.row.dataset == card.benchmark] or rows
    averages = [one for one in rows if one.row.metric in ("average", "weighted average")]
    if card.metric is not None:
        named = [one for one in rows if one.row.metric == card.metric]
        return named[0] if len({one.row.dataset for one in named}) == 1 else None
    if averages:
        return averages[0]
    return rows[0] if len({(one.row.model, one.row.dataset) for one in rows}) == 1 else None


def _holm(
    table: CardTable, pairs: Sequence[tuple[str, str]], items: dict[tuple[str, str], int | None]
) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    tested = {}
    for bench, column in pairs:
        n = items[bench, column]
        if n:
            shares = (_score(table, bench, column) / 100, _score(table, bench, table.base) / 100)
            tested[bench, column] = unpaired_p(*shares, n)
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {pair: (tested.get(pair), adjusted.get(pair)) for pair in pairs}


def _score(table: CardTable, bench: str, column: str) -> float:
    return table.rows[bench][table.columns.index(column)]


def _wilson(share: float, n: int) -> tuple[float, float]:
    found = wilson(round(share * n), n)
    return min(found.low, share), max(found.high, share)
