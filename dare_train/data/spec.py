"""The one grammar that names training rows: ``SOURCE[SPLIT:COUNT,...]+SOURCE...``.

    puzzles/sudoku[train:20000]                 built-in generator, first 20,000 rows of its train split
    rows.jsonl+more.parquet[train:500]          local files, joined
    openai/gsm8k/main[train:1000,test:100]      data set of the hub, configuration after the second slash

A split that is not given is ``train``; a count that is not given takes all rows. Splits called ``test`` or
``validation`` beside a training split are held out: they are never trained on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dare_eval.errors import UsageError

_PART = re.compile(r"^(?P<name>[^\[\]+]+?)(?:\[(?P<splits>[^\[\]]*)\])?$")
_HELD_OUT = ("test", "validation")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one split of one source."""

    source: str
    split: str = "train"
    count: int | None = None

    def __str__(self) -> str:
        return f"{self.source}[{self.split}{'' if self.count is None else f':{self.count}'}]"


def parse_sources(text: str) -> list[Selection]:
    """Return the selections that ``text`` names, in order; raises ``UsageError`` when it cannot be read."""
    found = []
    for piece in text.split("+"):
        match = _PART.match(piece.strip())
        if match is None:
            raise _malformed(text, piece)
        name, splits = match["name"].strip(), match["splits"]
        for part in splits.split(",") if splits else ["train"]:
            found.append(_selection(text, name, part.strip()))
    return found


def separate(selections: list[Selection]) -> tuple[list[Selection], list[Selection]]:
    """Return (trained on, held out): a source with several splits keeps its test and validation rows out."""
    several = {item.source for item in selections if item.split not in _HELD_OUT}
    held = [item for item in selections if item.split in _HELD_OUT and item.source in several]
    return [item for item in selections if item not in held], held


def _selection(text: str, name: str, part: str) -> Selection:
    split, sign, count = part.partition(":")
    if not split or (sign and not count.isdigit()) or (sign and int(count) == 0):
        raise _malformed(text, part)
    return Selection(name, split, int(count) if sign else None)


def _malformed(text: str, piece: str) -> UsageError:
    return UsageError(
        f"data source '{piece}' cannot be read",
        seen=text,
        allowed="SOURCE[SPLIT:COUNT,SPLIT:COUNT] joined by '+', counts above 0",
        remedy="data.train = puzzles/sudoku[train:20000]",
    )
