"""Rows tokenised once and kept as a Parquet file, so that later runs start without rendering them again.

The file carries what the tokens depend on (tokenizer, chat template, settings); a run whose own differ refuses it.
``dare-train data prepare`` writes it, ``data.prepared`` reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError, SetupError, UsageError
from dare_train.config import DataSettings
from dare_train.data.render import Example

_KEY = b"dare_rows"
COLUMNS = ("ids", "prompt_length")


def rendering_digest(tokenizer: Any, settings: DataSettings) -> str:
    """Return a hash of everything that turns a row into tokens."""
    parts = {
        "vocabulary": hashlib.sha256(json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()).hexdigest(),
        "template": tokenizer.chat_template,
        "settings": settings.model_dump(exclude={"prepared", "shuffle", "eos_padding", "streaming", "shuffle_buffer"}),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def write_prepared(path: Path, examples: Sequence[Example], digest: str, sources: dict[str, int]) -> None:
    """Write ``examples`` to ``path``; raises ``UsageError`` when it exists, ``SetupError`` when the disk refuses."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    if path.is_dir():
        raise UsageError("the file to write is a folder", seen=path, remedy=f"--output {path / 'rows.parquet'}")
    if path.exists():
        raise UsageError("the prepared file exists already", seen=path, remedy="--output another one, or remove it")
    columns = {"ids": [list(e.ids) for e in examples], "prompt_length": [e.prompt_length for e in examples]}
    table = arrow.table(
        columns, schema=arrow.schema([("ids", arrow.list_(arrow.int32())), ("prompt_length", arrow.int32())])
    )
    note = json.dumps({"digest": digest, "sources": sources}).encode()
    draft = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table.replace_schema_metadata({_KEY: note}), draft)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # below a file there is nothing to remove
            draft.unlink(missing_ok=True)
        raise SetupError(
            f"the prepared rows cannot be written: {error.strerror or error}",
            seen=path,
            allowed="a writable disk with room",
            remedy="--output a file elsewhere",
        ) from error


def read_prepared(path: Path, digest: str) -> tuple[list[Example], dict[str, int]]:
    """Return the rows of ``path`` and their sources; raises ``DataError`` when they were made for another run."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(path)
        note = json.loads(table.schema.metadata[_KEY])
        columns, made_with, sources = [table[name].to_pylist() for name in COLUMNS], note["digest"], note["sources"]
    except (OSError, KeyError, TypeError, ValueError, arrow.ArrowException) as error:
        raise DataError(
            f"this is no file of prepared rows: {error}", seen=path, remedy="dare-train data prepare --config ..."
        ) from error
    if made_with != digest:
        raise DataError(
            "the rows were prepared with another tokenizer, chat template or data settings",
            seen=path,
            allowed="rows prepared with this very config",
            remedy="dare-train data prepare --config ... writes them anew",
        )
    return [Example(tuple(ids), prompt) for ids, prompt in zip(*columns, strict=True)], sources
