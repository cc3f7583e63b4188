"""Two results on the same items, item by item: what both answered, what only one did, which verdicts flipped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dare_eval.records.items import ItemRecord
from dare_eval.records.summary import credit, is_scored


@dataclass(frozen=True, slots=True)
class Flip:
    """An item whose verdict differs between the two results."""

    item_id: str
    index: int
    won: bool
    """True when the second result is right and the first wrong."""
    reference: Any
    extracted_a: str | None
    extracted_b: str | None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Items scored in both results, ordered by item id so that resampling does not depend on file order."""

    a: tuple[ItemRecord, ...]
    b: tuple[ItemRecord, ...]
    only_a: int
    """Items scored in the first result alone."""
    only_b: int
    """Items scored in the second result alone."""

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.a)

    @property
    def questions(self) -> list[str] | None:
        """Question of each pair when some question has several answers, else None."""
        labels = [record.question_id for record in self.a]
        return labels if len(set(labels)) < len(labels) else None

    @property
    def other_prompts(self) -> int:
        """Number of pairs whose models received different prompts."""
        return sum(bool(x.prompt_sha and y.prompt_sha) and x.prompt_sha != y.prompt_sha for x, y in self._both())

    @property
    def graded(self) -> bool:
        """True when an item has credit between 0 and 1, or credit that differs from its verdict."""
        return any(credit(r, graded=True) != credit(r, graded=False) for r in (*self.a, *self.b))

    def credits(self, *, graded: bool) -> tuple[list[float], list[float]]:
        """Return the credit of each pair in both results."""
        return [credit(r, graded=graded) for r in self.a], [credit(r, graded=graded) for r in self.b]

    def flips(self) -> list[Flip]:
        """Return the items whose verdict flipped, by position in the data set."""
        flipped = [(x, y) for x, y in self._both() if bool(x.correct) != bool(y.correct)]
        flipped.sort(key=lambda pair: (pair[0].index, pair[0].item_id))
        return [Flip(x.item_id, x.index, bool(y.correct), x.reference, x.extracted, y.extracted) for x, y in flipped]

    def _both(self) -> Iterable[tuple[ItemRecord, ItemRecord]]:
        return zip(self.a, self.b, strict=True)


def pair_items(a: Iterable[ItemRecord], b: Iterable[ItemRecord]) -> Pairs:
    """Pair the scored items of two results by item id."""
    left = {record.item_id: record for record in a if is_scored(record)}
    right = {record.item_id: record for record in b if is_scored(record)}
    common = sorted(left.keys() & right.keys())
    return Pairs(
        tuple(left[key] for key in common),
        tuple(right[key] for key in common),
        only_a=len(left) - len(common),
        only_b=len(right) - len(common),
    )
