"""Answers the items of a data set that have no answer yet, batch by batch, whatever an answer is.

Each batch is on disk before the next one starts. A batch that raises is tried again item by item, so one bad item
costs nothing but itself; after five bad items the data set is given up. Generation and likelihood share this loop;
what a batch means comes in as a function.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opencompass.utils import get_logger

from dare_eval.errors import DareError, DataError, IncompleteError
from dare_eval.inferencers.item_store import ItemStore
from dare_eval.inferencers.rows import Row
from dare_eval.records.atomic import write_atomic
from dare_eval.records.items import ItemRecord

MAX_FAILED_ITEMS = 5
PROGRESS_S = 15.0

Answer = Callable[[list[int]], Sequence[ItemRecord]]
"""From positions in the data set to one record each."""
Check = Callable[[int], object]
"""Looks at the prompt of one item; raises ``DataError`` when the model cannot take it."""


class ItemsFailedError(IncompleteError):
    """The model raised on some items; ``index`` is the first of them, ``trace`` the traceback of its cause."""

    def __init__(self, failed: Sequence[tuple[Row, Exception]], done: int, total: int) -> None:
        row, cause = failed[0]
        self.index, self.item_id = row.index, row.item_id
        self.trace = "".join(traceback.format_exception(cause))
        others = f" and on {len(failed) - 1} more" if len(failed) > 1 else ""
        super().__init__(
            f"the model raised on item {row.index}{others}: {type(cause).__name__}: {cause}",
            seen=f"{done} of {total} items decoded and kept",
            remedy=getattr(cause, "remedy", "")
            or "repair the cause and run the same command again: only the missing items run",
        )


@dataclass(frozen=True, slots=True)
class ItemContext:
    """What our infer task knows about the rows; absent under the stock task, which then cannot resume."""

    base: str
    """Abbr of the whole data set, also for a part of it."""
    rows: Sequence[Row]
    """The rows of this part, in order."""
    fingerprint: str
    """Fingerprint of this model on this data set."""


@dataclass(slots=True)
class ItemLoop:
    """One pass over ``rows`` in batches of ``batch_items``; ``store`` says what is done and keeps what is new."""

    store: ItemStore
    rows: Sequence[Row]
    batch_items: int
    failed: list[tuple[Row, Exception]] = field(default_factory=list)
    answered: int = 0
    last_note_s: float = field(default_factory=time.monotonic)

    def run(self, answer: Answer, check: Check | None = None) -> list[ItemRecord]:
        """Return one record per row, in order; raises :class:`ItemsFailedError` when one is missing at the end.

        ``check`` sees every item that is still to answer before the first is answered: a prompt that cannot work ends
        the data set before time is spent on the others. Raises ``DataError`` then.
        """
        todo = [index for index, row in enumerate(self.rows) if row.item_id not in self.store.done]
        if kept := len(self.rows) - len(todo):
            get_logger().info(f"{kept} of {len(self.rows)} items were decoded before and are kept")
        if check is not None:
            self._check(check, todo)
        for start in range(0, len(todo), self.batch_items):
            self._answer(answer, todo[start : start + self.batch_items])
            self._note_progress(len(todo))
            if len(self.failed) >= MAX_FAILED_ITEMS:
                break
        missing = sum(row.item_id not in self.store.done for row in self.rows)
        if missing:
            raise ItemsFailedError(self.failed, len(self.rows) - missing, len(self.rows))
        return [self.store.done[row.item_id] for row in self.rows]

    def _check(self, check: Check, todo: list[int]) -> None:
        found: dict[int, DataError] = {}
        for index in todo:
            try:
                check(index)
            except DataError as error:
                found[index] = error
            except DareError:  # a setting that is wrong for every item
                raise
            except Exception as error:  # templates and tokenizers raise anything
                found[index] = DataError(f"{type(error).__name__}: {error}", remedy="repair the item, or leave it out")
                found[index].__cause__ = error
        if not found:
            return
        index, first = next(iter(found.items()))
        others = f" (and of {len(found) - 1} more)" if len(found) > 1 else ""
        raise DataError(
            f"item {self.rows[index].index}{others}: {first.what}",
            seen=first.seen,
            allowed=first.allowed,
            remedy=first.remedy,
        ) from first

    def _answer(self, answer: Answer, batch: list[int]) -> None:
        try:
            records = answer(batch)
        except Exception as error:
            if len(batch) == 1:
                row = self.rows[batch[0]]
                self.failed.append((row, error))
                self.store.append([ItemRecord(**identity(row), error=f"{type(error).__name__}: {error}")])
                return
            for one in batch:
                if len(self.failed) < MAX_FAILED_ITEMS:
                    self._answer(answer, [one])
            return
        self.answered += len(batch)
        self.store.append(records)

    def _note_progress(self, total: int) -> None:
        if time.monotonic() - self.last_note_s >= PROGRESS_S:
            self.last_note_s = time.monotonic()
            get_logger().info(f"{self.answered} of {total} items decoded")


def identity(row: Row) -> dict[str, Any]:
    """Return the fields of an item record that say which item it is."""
    return {"item_id": row.item_id, "question_id": row.question_id, "index": row.index, "repeat": row.repeat}


def write_predictions(target: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Write a predictions file in upstream's format in one step: a killed writer leaves the old file or none."""
    numbered = {str(index): entry for index, entry in enumerate(entries)}
    write_atomic(target, json.dumps(numbered, indent=4, ensure_ascii=False, default=str))
