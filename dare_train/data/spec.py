"""The one grammar that names training rows: ``SOURCE[SPLIT:COUNT,...]+SOURCE...``.

    puzzles/sudoku[train:20000]                 built-in generator, first 20,000 rows of its train split
    rows.jsonl+more.parquet[train:500]          local files, joined
    openai/gsm8k/main[train:1000,test:100]      data set of the hub, configuration after the second slash

A split that is not given is ``train``; a count that is not given takes all rows. Splits whose name starts with ``test``
or ``validation`` beside a training split are held out: they are never trained on. A local file has no splits of its
own: those named take its rows one after the other (``rows.jsonl[train:500,test:100]``: 0-499, then 500-599).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dare_eval.errors import UsageError

_PART = re.compile(r"^(?P<name>[^\[\]+]+?)(?:\[(?P<splits>[^\[\]]*)\])?$")
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}")
_HELD_OUT = ("test", "validation")
FILE_KINDS = (".jsonl", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one split of one source."""

    source: str
    split: str = "train"
    count: int | None = None
    start: int = 0
    """Rows of a local file that stand before this selection: those of the splits named before it."""

    @property
    def local(self) -> bool:
        """Whether the rows are made or read on this machine."""
        return self.source.startswith("puzzles/") or Path(self.source).suffix in FILE_KINDS

    @property
    def held_out(self) -> bool:
        """Whether the split is one that other splits of its source are judged on."""
        return self.split.startswith(_HELD_OUT)

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
    return [_placed(item, found) for item in found]


def separate(selections: list[Selection]) -> tuple[list[Selection], list[Selection]]:
    """Return (trained on, held out): a source with several splits keeps its test and validation rows out."""
    several = {item.source for item in selections if not item.held_out}
    held = [item for item in selections if item.held_out and item.source in several]
    return [item for item in selections if item not in held], held


def _selection(text: str, name: str, part: str) -> Selection:
    split, sign, count = part.partition(":")
    if not split or (sign and not _COUNT.fullmatch(count)):
        raise _malformed(text, part)
    return Selection(name, split, int(count) if sign else None)


def _placed(item: Selection, found: Sequence[Selection]) -> Selection:
    """Return a selection of a local file with the rows of the file's earlier splits left before it."""
    if Path(item.source).suffix not in FILE_KINDS:
        return item
    splits: dict[str, list[int | None]] = {}
    for other in found:
        if other.source == item.source:
            splits.setdefault(other.split, []).append(other.count)
    before = 0
    for split, counts in splits.items():
        if split == item.split:
            break
        if None in counts:
            raise UsageError(
                f"split '{split}' takes all rows of the file and leaves none for '{item.split}'",
                seen=item.source,
                allowed="a count on every split of a local file but the last",
                remedy=f"data.train = {item.source}[{split}:COUNT,{item.split}]",
            )
        before += max(count for count in counts if count is not None)
    return replace(item, start=before)


def _malformed(text: str, piece: str) -> UsageError:
    return UsageError(
        f"data source '{piece}' cannot be read",
        seen=text,
        allowed="SOURCE[SPLIT:COUNT,SPLIT:COUNT] joined by '+', counts above 0",
        remedy="data.train = puzzles/sudoku[train:20000]",
    )
