"""Measures the noise floor: verdicts of one configuration under other batch sizes, attention back ends and dtypes.

The base and its variations answered the same items with the same weights and settings, so every verdict that flips is
noise of the machine. Runs nothing; ``dare-eval noise`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.records.intervals import wilson
from dare_eval.records.items import ItemRecord
from dare_eval.records.noise import Floor
from dare_eval.records.pairing import pair_items


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One changed setting and the records it gave."""

    axis: str
    """``batch size``, ``attention`` or ``dtype``."""
    value: str
    records: Sequence[ItemRecord]


def noise_floor(
    model: str, dataset: str, weight_hash: str | None, base: Sequence[ItemRecord], others: Sequence[Variation]
) -> Floor | None:
    """Return the floor: the largest share of items that one variation flipped; None when no item can be compared."""
    found = [one for one in (_variation(base, other) for other in others) if one["n"]]
    if not found:
        return None
    worst = max(found, key=lambda one: (one["flips"] / one["n"], one["n"]))
    interval = wilson(worst["flips"], worst["n"])
    return Floor(
        model=model,
        dataset=dataset,
        weight_hash=weight_hash,
        n=worst["n"],
        flip_rate=100 * interval.value,
        low=100 * interval.low,
        high=100 * interval.high,
        variations=found,
    )


def _variation(base: Sequence[ItemRecord], other: Variation) -> dict[str, Any]:
    pairs = pair_items(base, other.records)
    flips = pairs.flips()
    won = sum(flip.won for flip in flips)
    return {
        "axis": other.axis,
        "value": other.value,
        "n": pairs.n,
        "flips": len(flips),
        "other_texts": sum(a.response != b.response for a, b in zip(pairs.a, pairs.b, strict=True)),
        "delta": 100 * (2 * won - len(flips)) / pairs.n if pairs.n else 0.0,
    }
