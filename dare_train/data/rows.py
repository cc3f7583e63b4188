"""Opens a source of rows and turns each row into chat messages.

A source is a built-in generator (``puzzles/NAME``), a local JSONL or Parquet file, or a data set of the hub.
A row that lacks a field, or whose field is not text, is refused with its index and the reason, or skipped and
counted. Leaves out tokens (``dare_train.data.render``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError, unknown
from dare_train.config import DataSettings
from dare_train.data.spec import FILE_KINDS, Selection


class UnreachableError(DataError):
    """A data set of the hub that cannot be looked at from here: nothing is known about it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One training row: the turns before the answer, and the answer."""

    turns: tuple[Mapping[str, str], ...]
    """Messages {role, content} up to the answer."""
    answer: str
    index: int
    """Place of the row in its source."""
    source: str = ""

    def __str__(self) -> str:
        """Return how messages name the row."""
        return f"row {self.index}" + (f" of {self.source}" if self.source else "")


@dataclass(slots=True)
class SkippedRows:
    """Rows that were left out, and why; a row that a stream meets again is not counted again."""

    reasons: dict[str, int] = field(default_factory=dict)
    _seen: set[tuple[str, int]] = field(default_factory=set)

    @property
    def total(self) -> int:
        """Number of rows left out."""
        return sum(self.reasons.values())

    def add(self, reason: str, place: tuple[str, int] | None = None) -> None:
        """Count one row; ``place`` (source, index) tells whether it has been counted before."""
        if place is not None and place in self._seen:
            return
        if place is not None:
            self._seen.add(place)
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def read_rows(selection: Selection, settings: DataSettings, skipped: SkippedRows) -> Iterator[Row]:
    """Yield the rows of ``selection``; raises ``DataError`` for a missing source or, unless skipping, a bad row."""
    for index, record in selected(selection, whole=not settings.streaming):
        try:
            yield to_row(record, settings, index, str(selection))
        except DataError as error:
            if settings.on_bad_row == "refuse":
                raise DataError(
                    f"row {index} of {selection} cannot be trained on: {error.what}",
                    seen=error.seen,
                    allowed=error.allowed,
                    remedy="repair the row, name the right columns, or leave bad rows out: --skip-bad",
                ) from None
            skipped.add(error.what, (str(selection), index))


def selected(
    selection: Selection, *, whole: bool, rows: Iterator[Mapping[str, Any]] | None = None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield place in the source and raw record; with ``whole``, fewer rows than asked for raise ``DataError``.

    ``rows`` are those of a source that is read in another way than here.
    """
    found, opened = 0, open_source(selection) if rows is None else rows
    for index, record in enumerate(islice(opened, selection.count), start=selection.start):
        found += 1
        yield index, record
    if whole and selection.count is not None and found < selection.count:
        raise DataError(
            f"{selection.source} has fewer rows than asked for",
            seen=f"{found:,} rows",
            allowed=f"{selection.count:,} rows for {selection}",
            remedy="lower the count in data.train, or leave it out to take all rows",
        )


def to_row(record: Mapping[str, Any], settings: DataSettings, index: int, source: str = "") -> Row:
    """Return one row; raises ``DataError`` naming the field that is missing, empty or not text."""
    if settings.messages_field:
        turns = _messages(_get(record, settings.messages_field))
        if turns[-1]["role"] != "assistant":
            raise DataError("the last message is not the assistant's", seen=turns[-1]["role"], allowed="assistant")
        return Row(tuple(turns[:-1]), turns[-1]["content"], index, source)
    prompt = field_text(record, settings.prompt_field)
    return Row(({"role": "user", "content": prompt},), field_text(record, settings.response_field), index, source)


def open_source(selection: Selection) -> Iterator[Mapping[str, Any]]:
    """Yield the raw records of one split of one source; more than ``selection.count`` of them may follow."""
    name = selection.source
    if name.startswith("puzzles/"):
        from dare_train.data.puzzles import puzzle_rows

        return puzzle_rows(name.removeprefix("puzzles/"), selection.split, selection.count)
    if Path(name).suffix in FILE_KINDS or _on_disk(name):
        return islice(_file_rows(Path(name)), selection.start, None)
    return _hub_rows(selection)


def _on_disk(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # longer than a file system allows
        return False


def _file_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"the training file {what}", seen=path, remedy="data.train = PATH of a JSONL or Parquet file")
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
    elif path.suffix in (".jsonl", ".json"):
        yield from _json_rows(path)
    else:
        raise unknown("file type", path.suffix, FILE_KINDS)


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open("rb") as stream:
            yield from (_json_line(path, number, line) for number, line in enumerate(stream, 1) if line.strip())
    except OSError as error:
        raise DataError(f"the training file cannot be read: {error.strerror}", seen=path) from error


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"this is no readable Parquet file: {error}", seen=path) from error


def _json_line(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {number} is not JSON: {error}", seen=path) from None
    if not isinstance(record, dict):
        raise DataError(f"line {number} is not a JSON object", seen=f"{path}: {type(record).__name__}")
    return record


def _hub_rows(selection: Selection) -> Iterator[Mapping[str, Any]]:
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    owner, name, *config = selection.source.split("/", 2) if "/" in selection.source else (None, selection.source)
    path = f"{owner}/{name}" if owner else name
    try:
        yield from load_dataset(path, *config, split=selection.split, streaming=True)
    except (DatasetNotFoundError, ValueError, OSError) as error:
        reached = not _is_offline(error)
        raise (DataError if reached else UnreachableError)(
            f"the data set cannot be {'opened' if reached else 'reached'}: {error}",
            seen=str(selection),
            allowed="puzzles/NAME, a local .jsonl or .parquet file, or a data set of the hub",
            remedy="check the name and the network, or download the files and name them",
        ) from error


def _is_offline(error: BaseException | None) -> bool:
    """Return whether a missing network is behind ``error``, rather than a name that does not exist."""
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    while error is not None:
        if isinstance(error, ConnectionError | LocalEntryNotFoundError | OfflineModeIsEnabled):
            return True
        error = error.__cause__ or error.__context__
    return False


def _get(record: Mapping[str, Any], key: str) -> Any:
    if record.get(key) is None:
        raise DataError(f"field '{key}' is missing", seen=", ".join(map(str, record)), allowed=f"a field '{key}'")
    return record[key]


def field_text(record: Mapping[str, Any], key: str) -> str:
    """Return the text in field ``key``; raises ``DataError`` when it is missing, empty or not text."""
    value = _get(record, key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"field '{key}' is empty or not text", seen=repr(value)[:80], allowed="text")
    return value


def _messages(value: Any) -> list[dict[str, str]]:
    fine = isinstance(value, list) and value
    if not fine or not all(isinstance(item, dict) and {"role", "content"} <= item.keys() for item in value):
        raise DataError("the messages field is not a list of {role, content}", seen=repr(value)[:80])
    return [{"role": str(item["role"]), "content": str(item["content"])} for item in value]
