"""Reads and writes item-record files (JSON lines), also after a crash.

Each line is on disk (fsync) before :meth:`ItemWriter.append` returns. A process killed in the middle of a line
leaves a half line: the next writer moves it to ``<file>.damaged`` and goes on, the reader reports it. Lines the
reader cannot use (damaged, or of a newer version) come back as :class:`LineProblem` with their whole text, so
nothing is lost and nothing is hidden.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import parse_json, write_atomic
from dare_eval.records.items import RECORD_VERSION, ItemRecord


@dataclass(frozen=True, slots=True)
class LineProblem:
    """One line that is not a usable record."""

    path: str
    line: int
    kind: str
    """``half line``, ``corrupt``, ``unknown version`` or ``not a record``."""
    message: str
    text: str
    """The whole line as it stands in the file."""


@dataclass(frozen=True, slots=True)
class ItemFile:
    """What one record file holds."""

    records: list[ItemRecord]
    """The last record of each item, in the order in which the items first appeared."""
    problems: list[LineProblem]
    replaced: int
    """Number of earlier lines that a later line of the same item replaces."""

    @property
    def by_id(self) -> dict[str, ItemRecord]:
        """Return the records by item id."""
        return {record.item_id: record for record in self.records}


def read_items(path: Path) -> ItemFile:
    """Return the records of ``path`` and every line that is none; raises ``DataError`` when there is no such file."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError("item records are missing", seen=path, remedy="run the evaluation again") from None
    except (OSError, ValueError) as error:  # no permission, or a name that no file can have
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"item records cannot be read: {reason}", seen=path, remedy="check name and permissions"
        ) from None
    latest: dict[str, ItemRecord] = {}
    problems: list[LineProblem] = []
    lines = 0
    for number, line, ended in _lines(raw):
        try:
            record = ItemRecord.from_dict(_parse(line))
        except DataError as error:
            problems.append(_problem(path, number, line, ended, error))
            continue
        lines += 1
        latest[record.item_id] = record
    return ItemFile(list(latest.values()), problems, lines - len(latest))


def write_items(path: Path, records: Iterable[ItemRecord]) -> None:
    """Replace ``path`` by ``records`` in one step (rescoring); a killed writer leaves the old file."""
    write_atomic(path, b"".join(_line(record) for record in records))


class ItemWriter:
    """Appends records to one file; the file is locked against a second writer until :meth:`close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise DataError(
                "another process writes this record file", seen=path, remedy="wait for it, or use another work folder"
            ) from None
        self._repair()

    def append(self, *records: ItemRecord) -> None:
        """Append ``records`` and return once they are on disk."""
        self._write(b"".join(_line(record) for record in records))

    def close(self) -> None:
        """Release the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> ItemWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            os.fsync(self._fd)
        except OSError as error:
            raise DataError(
                f"item records cannot be written: {error.strerror}", seen=self.path, remedy="free disk space, run again"
            ) from error

    def _repair(self) -> None:
        """End the last line, or move a half one aside, so that the next record starts on a line of its own."""
        raw = self.path.read_bytes()
        if not raw or raw.endswith(b"\n"):
            return
        start = raw.rfind(b"\n") + 1
        try:
            ItemRecord.from_dict(_parse(raw[start:]))
        except DataError:
            with self.path.with_name(self.path.name + ".damaged").open("ab") as stream:
                stream.write(raw[start:] + b"\n")
            os.ftruncate(self._fd, start)
        else:
            self._write(b"\n")


def _line(record: ItemRecord) -> bytes:
    return json.dumps(record.to_dict(), separators=(",", ":"), allow_nan=False, default=str).encode() + b"\n"


def _lines(raw: bytes) -> Iterator[tuple[int, bytes, bool]]:
    pieces = raw.split(b"\n")
    for number, line in enumerate(pieces, start=1):
        if line.strip():
            yield number, line, number < len(pieces)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError("line is not a JSON object")
    return value


def _problem(path: Path, number: int, line: bytes, ended: bool, error: DataError) -> LineProblem:
    if not ended:
        kind = "half line"
    elif error.what.startswith("line is not JSON"):
        kind = "corrupt"
    elif error.what.startswith("item record of an unknown version"):
        kind = "unknown version"
    else:
        kind = "not a record"
    message = f"{error.what} (this program reads version {RECORD_VERSION})" if kind == "unknown version" else error.what
    return LineProblem(str(path), number, kind, message, line.decode("utf-8", "backslashreplace"))
