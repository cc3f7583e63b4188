"""Data sets, built once per process tree: workers forked later inherit what planning has already built.

A data set is keyed by its whole config without prompts and evaluation, so a changed range or path builds again.
"""

from __future__ import annotations

import json
from typing import Any

from opencompass.registry import LOAD_DATASET
from opencompass.utils import build_dataset_from_cfg, dataset_abbr_from_cfg

from dare_eval.errors import DareError, DataError
from dare_eval.inferencers.rows import Row, content_digest, make_rows, rows_digest
from dare_eval.runtime.data_paths import UPSTREAM_ROOT, absent_place, expected_place, prepare_dataset
from dare_eval.runtime.dotted import resolve

_BUILT: dict[str, Any] = {}
_ROWS: dict[str, list[Row]] = {}


def build(dataset_cfg: Any) -> Any:
    """Return the built OpenCompass data set; raises ``DataError`` with the place looked at when it cannot be built."""
    key = _key(dataset_cfg)
    if key not in _BUILT:
        try:
            _BUILT[key] = _build(prepare_dataset(dataset_cfg))
        except DareError as error:  # kept, so that each further model does not try the same download again
            _BUILT[key] = error
    if isinstance(_BUILT[key], DareError):
        raise _BUILT[key]
    return _BUILT[key]


def _build(prepared: Any) -> Any:
    resolve("data set", prepared["type"], LOAD_DATASET)  # a missing class is no missing file
    absent = absent_place(prepared)
    if absent is not None:
        raise DataError(
            "the data set's files are not there",
            seen=absent,
            allowed="the files in OpenCompass' layout",
            remedy=f"export {UPSTREAM_ROOT} (or DARE_DATA) to the folder that holds data/",
        )
    try:
        return build_dataset_from_cfg(prepared)
    except DareError:
        raise
    except Exception as error:
        raise DataError(
            f"the data set cannot be built: {type(error).__name__}: {error}",
            seen=expected_place(prepared) or prepared.get("type"),
            allowed="the files in OpenCompass' layout",
            remedy=f"export {UPSTREAM_ROOT} (or DARE_DATA) to the folder that holds data/, and check the path",
        ) from error


def rows_of(dataset_cfg: Any) -> list[Row]:
    """Return the items of the whole data set, in order."""
    key = _key(dataset_cfg)
    if key not in _ROWS:
        test = build(dataset_cfg).test
        repeats = int(dataset_cfg.get("n", 1))
        questions = len(test) // repeats if repeats > 1 else None
        maker = resolve("data set", dataset_cfg["type"], LOAD_DATASET)
        identity = getattr(maker, "identity", None)
        _ROWS[key] = make_rows(test, dataset_name(dataset_cfg), split_of(dataset_cfg), questions, identity)
    return _ROWS[key]


def content_hash(dataset_cfg: Any) -> str:
    """Return the SHA-256 over the items in order."""
    return content_digest(rows_of(dataset_cfg))


def prompts_hash(dataset_cfg: Any) -> str:
    """Return the SHA-256 over all columns of all rows: what prompts are filled with."""
    return rows_digest(build(dataset_cfg).test)


def examples_hash(dataset_cfg: Any) -> str:
    """Return the SHA-256 of the split few-shot examples come from; empty for zero-shot prompts."""
    retriever = str(dataset_cfg.get("infer_cfg", {}).get("retriever", {}).get("type", ""))
    if retriever.endswith("ZeroRetriever"):
        return ""
    return rows_digest(build(dataset_cfg).train)


def dataset_name(dataset_cfg: Any) -> str:
    """Return the name that goes into item ids: equal for all prompt variants of one data set."""
    path, name = str(dataset_cfg.get("path") or ""), dataset_cfg.get("name")
    if not path:
        kind = dataset_cfg["type"]
        path = kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__
    elif path.startswith(("/", "~")):  # a place of this machine says nothing
        path = dataset_abbr_from_cfg(dataset_cfg)
    return f"{path}/{name}" if name else path


def split_of(dataset_cfg: Any) -> str:
    """Return the split that is evaluated."""
    return str(dataset_cfg.get("reader_cfg", {}).get("test_split", "test"))


def _key(dataset_cfg: Any) -> str:
    plain = {key: value for key, value in dataset_cfg.items() if key not in ("infer_cfg", "eval_cfg")}
    return json.dumps(plain, sort_keys=True, default=str)
