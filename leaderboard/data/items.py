"""Item records of one result for reading: listed, filtered, paged; and two runs side by side, word by word."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError
from dare_eval.records.item_files import LineProblem
from dare_eval.records.items import ItemRecord
from dare_eval.records.pairing import pair_items
from dare_eval.records.runs import load_run

PAGE_ITEMS = 15
MOST_PAIRS = 500_000
VERDICTS = ("all", "right", "wrong", "no answer found", "not scored", "cut by length")
CHANGES = ("all changes", "second right only", "first right only", "both right", "both wrong")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The records of one result and what could not be read."""

    records: tuple[ItemRecord, ...]
    problems: tuple[LineProblem, ...]
    trouble: str | None
    """Why there are no records at all."""


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Some records of many."""

    records: tuple[ItemRecord, ...]
    page: int
    pages: int
    total: int


@functools.lru_cache(maxsize=8)
def load_items(folder: str, stamp: str, model: str, dataset: str) -> Loaded:
    """Return the records of one result by position; ``stamp`` (state of the folder) only tells versions apart."""
    del stamp
    try:
        file = load_run(Path(folder)).items(model, dataset)
    except (DareError, OSError) as error:
        return Loaded((), (), str(error))
    ordered = sorted(file.records, key=lambda record: (record.index, record.repeat, record.item_id))
    return Loaded(tuple(ordered), tuple(file.problems), None)


def verdict(record: ItemRecord) -> str:
    """Return in a word how an item ended."""
    if record.error is not None:
        return "failed"
    if record.unrecorded:
        return "no recording"
    if record.correct is None:
        return "not scored"
    return "right" if record.correct else "wrong"


def find_items(records: Sequence[ItemRecord], *, show: str = "all", text: str = "", page: int = 1) -> ItemPage:
    """Return page ``page`` (from 1) of the records with verdict ``show`` (of :data:`VERDICTS`) that hold ``text``."""
    wanted = text.casefold()
    found = [record for record in records if _shown(record, show) and (not wanted or _holds(record, wanted))]
    pages = max(1, -(-len(found) // PAGE_ITEMS))
    page = min(max(page, 1), pages)
    return ItemPage(tuple(found[(page - 1) * PAGE_ITEMS : page * PAGE_ITEMS]), page, pages, len(found))


def changes(a: Sequence[ItemRecord], b: Sequence[ItemRecord], show: str) -> list[tuple[ItemRecord, ItemRecord]]:
    """Return the pairs of common items whose verdicts relate as ``show`` (of :data:`CHANGES`) says, by position."""
    wanted = {
        "all changes": {(False, True), (True, False)},
        "second right only": {(False, True)},
        "first right only": {(True, False)},
        "both right": {(True, True)},
        "both wrong": {(False, False)},
    }[show]
    pairs = pair_items(a, b)
    found = [(x, y) for x, y in zip(pairs.a, pairs.b, strict=True) if (bool(x.correct), bool(y.correct)) in wanted]
    return sorted(found, key=lambda pair: (pair[0].index, pair[0].repeat))


def word_changes(a: str, b: str) -> list[tuple[str, str, str]]:
    """Return runs of words as ``(how, in a, in b)``; how is ``equal`` or ``changed``.

    Texts with more than :data:`MOST_PAIRS` pairs of equal words (long ones, and short ones that repeat one word, as
    denoisers do) are compared as a whole: the time of a comparison grows with these pairs.
    """
    left, right = _words(a), _words(b)
    count = Counter(left)
    if sum(count[word] for word in right) > MOST_PAIRS:
        return [("equal" if a == b else "changed", a, b)]
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return [
        ("equal" if tag == "equal" else "changed", "".join(left[i1:i2]), "".join(right[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"\s*(?:\w+|[^\w\s])|\s+", text)


def _shown(record: ItemRecord, show: str) -> bool:
    if show == "no answer found":
        return record.extracted is None and record.correct is not None
    if show == "not scored":
        return record.correct is None
    if show == "cut by length":
        return record.stop == "length"
    return show == "all" or verdict(record) == show


def _holds(record: ItemRecord, wanted: str) -> bool:
    texts = (record.prompt, record.response, record.extracted, str(record.reference), record.item_id)
    return any(text and wanted in text.casefold() for text in texts)
