"""The scored items of one result as columns of numbers: what paired tests, AUP and pooled seeds need, without texts.

Reading a record file takes a tenth of a second, reading its columns a millisecond. They are kept below
``DARE_CACHE`` under the folder's state as the store knows it; a folder that changed since is read and not kept.
Leaves out items that do not enter a score.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dare_eval.records.atomic import write_atomic
from dare_eval.records.items import ItemRecord
from dare_eval.records.provenance import cache_dir
from dare_eval.records.runs import load_run
from dare_eval.records.store import folder_stamp
from dare_eval.records.summary import credit, is_scored

COLUMNS = np.dtype(
    [
        ("item", "u8"),
        ("question", "u8"),
        ("prompt", "u8"),  # 0: the prompt is not known
        ("index", "i8"),
        ("correct", "?"),
        ("credit", "f8"),
        ("nfe", "f8"),  # NaN where it was not measured, as for tokens and wall_s
        ("tokens", "f8"),
        ("wall_s", "f8"),
    ]
)
Vectors = NDArray[Any]
"""Structured array of :data:`COLUMNS`, sorted by item id as text, so that resampling does not depend on file order."""
_VERSION = 1


def make_vectors(records: Sequence[ItemRecord]) -> Vectors:
    """Return the columns of the scored items among ``records``."""
    scored = sorted((record for record in records if is_scored(record)), key=lambda record: record.item_id)
    return np.array([_row(record) for record in scored], dtype=COLUMNS)


def read_vectors(folder: Path, stamp: str, model: str, dataset: str) -> Vectors:
    """Return the columns of one result of the run in ``folder``, whose state in the store is ``stamp``.

    Raises ``DataError`` when there are no item records to read.
    """
    key = hashlib.sha256("\x00".join((str(_VERSION), str(folder), stamp, model, dataset)).encode()).hexdigest()
    path = cache_dir() / "vectors" / key[:2] / f"{key}.npy"
    with contextlib.suppress(OSError, ValueError):  # absent, or a damaged copy: made again
        kept: Vectors = np.load(path, allow_pickle=False)
        if kept.dtype == COLUMNS:
            return kept
    found = make_vectors(load_run(folder).items(model, dataset).records)
    if stamp and folder_stamp(folder) == stamp:
        data = io.BytesIO()
        np.save(data, found, allow_pickle=False)
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            write_atomic(path, data.getvalue())
    return found


def _row(record: ItemRecord) -> tuple[Any, ...]:
    return (
        _key(record.item_id),
        _key(record.question_id),
        _key(record.prompt_sha) if record.prompt_sha else 0,
        record.index,
        bool(record.correct),
        credit(record, graded=True),
        *(np.nan if value is None else value for value in (record.nfe, record.generated_tokens, record.wall_s)),
    )


def _key(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
