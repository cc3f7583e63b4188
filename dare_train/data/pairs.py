"""Preference pairs: one prompt, a better and a worse answer, as tokens.

Answers are text, or message lists whose last turn is the answer (the layout of UltraFeedback-style sets; the turns
before it are then the prompt).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import DataError
from dare_train.config import PairSettings
from dare_train.data.render import Example, Renderer
from dare_train.data.rows import Row, SkippedRows, field_text, selected
from dare_train.data.spec import Selection


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one prompt."""

    chosen: Example
    rejected: Example


def read_pairs(
    selections: Sequence[Selection], renderer: Renderer, settings: PairSettings, skipped: SkippedRows
) -> Iterator[Pair]:
    """Yield pairs as tokens; a bad row raises ``DataError`` with its index, or both its answers are skipped."""
    rows = (row for selection in selections for pair in pair_rows(selection, settings, skipped) for row in pair)
    examples = renderer.aligned(rows, skipped)
    for chosen, rejected in zip(examples, examples, strict=True):
        if chosen is not None and rejected is not None:
            yield Pair(chosen, rejected)


def pair_rows(selection: Selection, settings: PairSettings, skipped: SkippedRows) -> Iterator[tuple[Row, Row]]:
    """Yield (better, worse) rows of one selection."""
    for index, record in selected(selection, whole=not settings.streaming):
        try:
            yield to_pair(record, settings, index, str(selection))
        except DataError as error:
            if settings.on_bad_row == "refuse":
                raise DataError(
                    f"row {index} of {selection} is no preference pair: {error.what}",
                    seen=error.seen,
                    allowed=error.allowed,
                    remedy="repair the row, name the right columns, or leave bad rows out: --skip-bad",
                ) from None
            skipped.add(error.what, (str(selection), index))


def to_pair(record: Mapping[str, Any], settings: PairSettings, index: int, source: str = "") -> tuple[Row, Row]:
    """Return both rows of a record; raises ``DataError`` for a missing field and for two equal answers."""
    keys = (settings.chosen_field, settings.rejected_field)
    chosen, rejected = (_row(record, key, settings, index, source) for key in keys)
    if chosen.answer == rejected.answer:
        raise DataError("both answers are the same", seen=chosen.answer[:80])
    if chosen.turns != rejected.turns:
        raise DataError("the two answers have different prompts", seen=str(rejected.turns)[:80])
    return chosen, rejected


def _row(record: Mapping[str, Any], key: str, settings: PairSettings, index: int, source: str) -> Row:
    value = record.get(key)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        turns = [turn for turn in value if isinstance(turn, Mapping)]
        if len(turns) < 2 or turns[-1].get("role") != "assistant":
            raise DataError(f"field '{key}' is no conversation that ends with the assistant", seen=str(value)[:80])
        before = tuple({"role": str(turn["role"]), "content": str(turn["content"])} for turn in turns[:-1])
        return Row(before, field_text(turns[-1], "content"), index, source)
    prompt = field_text(record, settings.prompt_field)
    return Row(({"role": "user", "content": prompt},), field_text(record, key), index, source)
