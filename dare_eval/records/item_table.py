"""Item records as one Parquet file, for analysis in data frames.

Fields whose shape differs between records (reference, detail, edits, extra) become JSON text. Reading a table
written here gives equal records back.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dare_eval.records.items import ItemRecord

_AS_JSON = ("reference", "detail", "edits", "extra")


def write_parquet(path: Path, records: Iterable[ItemRecord]) -> None:
    """Write ``records`` to ``path``; the folder is made when missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_row(record) for record in records]
    table = pa.Table.from_pylist(rows, schema=_schema(pa))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def read_parquet(path: Path) -> list[ItemRecord]:
    """Return the records :func:`write_parquet` stored."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    for row in rows:
        for name in _AS_JSON:
            row[name] = json.loads(row[name])
    return [ItemRecord(**row) for row in rows]


def _row(record: ItemRecord) -> dict[str, Any]:
    row = {spec.name: getattr(record, spec.name) for spec in dataclasses.fields(record)}
    for name in _AS_JSON:
        row[name] = json.dumps(row[name], sort_keys=True, default=str)
    for name, value in row.items():
        if isinstance(value, str):  # Parquet text is UTF-8; a lone surrogate would refuse the whole file
            row[name] = value.encode("utf-8", "backslashreplace").decode()
    return row


def _schema(pa: Any) -> Any:
    kinds = {
        "str": pa.string(),
        "str | None": pa.string(),
        "int": pa.int64(),
        "int | None": pa.int64(),
        "bool": pa.bool_(),
        "bool | None": pa.bool_(),
        "float | None": pa.float64(),
        "tuple[int, ...] | None": pa.list_(pa.int64()),
    }
    return pa.schema([(spec.name, kinds.get(str(spec.type), pa.string())) for spec in dataclasses.fields(ItemRecord)])
