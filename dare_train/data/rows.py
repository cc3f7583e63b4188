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
from dare_train.data.spec import Selection

FILE_KINDS = (".jsonl", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Row:
    """One training row: the turns before the answer, and the answer."""

    turns: tuple[Mapping[str, str], ...]
    """Messages {role, content} up to the answer."""
    answer: str
    index: int
    """Place of the row in its source."""


@dataclass(slots=True)
class SkippedRows:
    """Rows that were left out, and why."""

    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of rows left out."""
        return sum(self.reasons.values())

    def add(self, reason: str) -> None:
        """Count one row."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def read_rows(selection: Selection, settings: DataSettings, skipped: SkippedRows) -> Iterator[Row]:
    """Yield the rows of ``selection``; raises ``DataError`` for a missing source or, unless skipping, a bad row."""
    raw = open_source(selection)
    for index, record in enumerate(islice(raw, selection.count)):
        try:
            yield to_row(record, settings, index)
        except DataError as error:
            if settings.on_bad_row == "refuse":
                raise DataError(
                    f"row {index} of {selection} cannot be trained on: {error.what}",
                    seen=error.seen,
                    allowed=error.allowed,
                    remedy="repair the row, name the right columns, or set data.on_bad_row = skip",
                ) from None
            skipped.add(error.what)


def to_row(record: Mapping[str, Any], settings: DataSettings, index: int) -> Row:
    """Return one row; raises ``DataError`` naming the field that is missing, empty or not text."""
    if settings.messages_field:
        turns = _messages(_get(record, settings.messages_field))
        if turns[-1]["role"] != "assistant":
            raise DataError("the last message is not the assistant's", seen=turns[-1]["role"], allowed="assistant")
        return Row(tuple(turns[:-1]), turns[-1]["content"], index)
    prompt = field_text(record, settings.prompt_field)
    return Row(({"role": "user", "content": prompt},), field_text(record, settings.response_field), index)


def open_source(selection: Selection) -> Iterator[Mapping[str, Any]]:
    """Yield the raw records of one split of one source."""
    name = selection.source
    if name.startswith("puzzles/"):
        from dare_train.data.puzzles import puzzle_rows

        return puzzle_rows(name.removeprefix("puzzles/"), selection.split, selection.count)
    if Path(name).suffix in FILE_KINDS or Path(name).exists():
        return _file_rows(Path(name))
    return _hub_rows(selection)


def _file_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise DataError(
            "the training file does not exist", seen=path, remedy="data.train = PATH of a JSONL or Parquet file"
        )
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    elif path.suffix in (".jsonl", ".json"):
        with path.open(encoding="utf-8") as stream:
            yield from (_json_line(path, number, line) for number, line in enumerate(stream, 1) if line.strip())
    else:
        raise unknown("file type", path.suffix, FILE_KINDS)


def _json_line(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
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
        raise DataError(
            f"the data set cannot be opened: {error}",
            seen=str(selection),
            allowed="puzzles/NAME, a local .jsonl or .parquet file, or a data set of the hub",
            remedy="check the name and the network, or download the files and name them",
        ) from error


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
