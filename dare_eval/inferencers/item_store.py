"""The append-only file behind an inference: one item record per line, on disk before the next batch starts.

A killed process loses at most the batch in flight. Each line carries the fingerprint of the run that made it, so
items of other settings can never be mixed in; they are moved aside. Parts of one data set read each other's
files, which makes a resumed run independent of how the data set was cut. The file stays when inference is done:
it holds the step maps, which upstream's prediction files have no place for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dare_eval.records.item_files import ItemWriter, read_items
from dare_eval.records.items import ItemRecord

SUFFIX = ".items.jsonl"
"""Does not end in ``.json``: upstream reads every ``<abbr>.json`` and ``<abbr>_<part>.json`` as predictions."""

_FINGERPRINT = "fingerprint"


class ItemStore:
    """Items of one data set (or part) that one process writes; ``done`` are those that need no decoding.

    ``base`` is the abbr of the whole data set; ``writes`` is False on all but the main process of a distributed
    model. Raises ``DataError`` when another process writes the same file.
    """

    def __init__(self, folder: Path, name: str, base: str, fingerprint: str, *, writes: bool = True) -> None:
        self.fingerprint = fingerprint
        path = folder / f"{name}{SUFFIX}"
        found = load_items(folder, base, fingerprint) if fingerprint else []
        self.done: dict[str, ItemRecord] = {record.item_id: record for record in found if record.error is None}
        if writes and not usable(path, fingerprint):
            move_aside(path)
        self._writer = ItemWriter(path) if writes else None

    def append(self, records: Iterable[ItemRecord]) -> None:
        """Write ``records`` to disk; those without an error count as done."""
        marked = [_with_fingerprint(record, self.fingerprint) for record in records]
        if self._writer is not None:
            self._writer.append(*marked)
        self.done.update({record.item_id: record for record in marked if record.error is None})

    def close(self) -> None:
        """Release the file."""
        if self._writer is not None:
            self._writer.close()


def item_files(folder: Path, base: str) -> list[Path]:
    """Return the item files of data set ``base`` and of its parts in ``folder``, sorted."""
    pattern = re.compile(re.escape(base) + r"(_\d+)?" + re.escape(SUFFIX))
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if pattern.fullmatch(path.name)) if folder.is_dir() else []


def load_items(folder: Path, base: str, fingerprint: str) -> list[ItemRecord]:
    """Return the items of ``base`` in ``folder`` that a run with ``fingerprint`` made, finished before failed."""
    records = [record for path in item_files(folder, base) for record in read_items(path).records]
    mine = [record for record in records if record.extra.get(_FINGERPRINT) == fingerprint]
    return sorted(mine, key=lambda record: (record.error is not None, record.index))


def usable(path: Path, fingerprint: str) -> bool:
    """Whether ``path`` may be appended to: absent, or every item in it belongs to ``fingerprint``."""
    if not path.exists():
        return True
    return bool(fingerprint) and all(r.extra.get(_FINGERPRINT) == fingerprint for r in read_items(path).records)


def move_aside(path: Path) -> Path | None:
    """Rename ``path`` to ``<name>.stale`` (``.stale2``, ...) and return the new name; None when there is no file."""
    if not path.exists():
        return None
    number, target = 1, path.with_name(f"{path.name}.stale")
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.stale{number}")
    return path.rename(target)


def store_items(path: Path, records: Iterable[ItemRecord], fingerprint: str) -> None:
    """Append ``records`` to ``path`` under ``fingerprint`` (used to adopt or salvage finished items)."""
    with ItemWriter(path) as writer:
        writer.append(*(_with_fingerprint(record, fingerprint) for record in records))


def _with_fingerprint(record: ItemRecord, fingerprint: str) -> ItemRecord:
    return replace(record, extra={**record.extra, _FINGERPRINT: fingerprint})
