"""What data a config needs and whether it is there: path, rows, hash, licence, how to get it.

A data set whose files are absent is never built, since upstream's loaders answer with a download attempt. Run with
``dare-eval data check CONFIG``.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from opencompass.utils import dataset_abbr_from_cfg

from dare_eval.errors import DareError
from dare_eval.evaluators.benchmarks import benchmark_of
from dare_eval.records.provenance import file_sha256
from dare_eval.runtime.built import build, content_hash
from dare_eval.runtime.data_paths import expected_place, prepare_dataset, share_data_root


@dataclass(frozen=True, slots=True)
class DataEntry:
    """One data set of a config; ``status`` is ``present``, ``missing`` or ``broken``."""

    dataset: str
    benchmark: str
    path: str
    status: str
    rows: int | None
    sha256: str
    licence: str
    get: str
    why: str


@functools.cache
def sources() -> dict[str, dict[str, str]]:
    """Return licence and origin of each benchmark, as ``dare_eval/datasets/sources.yaml`` states them."""
    import yaml

    text = resources.files("dare_eval.datasets").joinpath("sources.yaml").read_text()
    loaded: dict[str, dict[str, str]] = yaml.safe_load(text)
    return loaded


def inspect_datasets(dataset_cfgs: list[Any]) -> list[DataEntry]:
    """Return one entry per data set config, in order; reads files, downloads nothing."""
    share_data_root()
    return [_inspect(cfg) for cfg in dataset_cfgs]


def _inspect(dataset_cfg: Any) -> DataEntry:
    known = benchmark_of(dataset_cfg)
    name = known.name if known else "unknown"
    about = sources().get(name, {"licence": "unknown", "get": "see the data set's own page"})
    found: dict[str, Any] = {"status": "missing", "rows": None, "sha256": "", "why": "no such file or folder"}
    path = str(dataset_cfg.get("path", ""))
    try:
        prepared = prepare_dataset(dataset_cfg)
        path = expected_place(prepared) if prepared.get("path") else "generated"
        if path == "generated" or Path(path).exists():
            found = _read(dataset_cfg, path)
    except DareError as error:
        found["why"] = error.what
    found |= {"licence": about["licence"], "get": about["get"]}
    return DataEntry(dataset=dataset_abbr_from_cfg(dataset_cfg), benchmark=name, path=path, **found)


def _read(dataset_cfg: Any, path: str) -> dict[str, Any]:
    """Build the data set; generated ones are identified by the hash of their items, others by that of their files."""
    sha256 = "" if path == "generated" else _sha256(Path(path))
    try:
        rows = len(build(dataset_cfg).test)
    except DareError as error:
        return {"status": "broken", "rows": None, "sha256": sha256, "why": error.what}
    return {"status": "present", "rows": rows, "sha256": sha256 or content_hash(dataset_cfg), "why": ""}


def _sha256(place: Path) -> str:
    """Return the SHA-256 of a file, or over the names and hashes of a folder's files."""
    if place.is_file():
        return file_sha256(place)
    lines = [f"{f.relative_to(place)} {file_sha256(f)}\n" for f in sorted(place.rglob("*")) if f.is_file()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def texts_of(row: Mapping[str, Any], field: str | None) -> str:
    """Return the text of a row that is compared for overlap: ``field``, else the first known name of a question.

    Raises ``DareError`` (``DataError``) naming the row's fields when none of them is there.
    """
    from dare_eval.errors import DataError

    names = (field,) if field else ("question", "problem", "prompt", "text", "input", "origin_prompt", "query")
    for name in names:
        if isinstance(row.get(name), str):
            return str(row[name])
    allowed = ", ".join(sorted(row))
    raise DataError("the row has no text to compare", seen=", ".join(names), allowed=allowed, remedy="--field NAME")
