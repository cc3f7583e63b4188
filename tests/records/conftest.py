from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dare_eval.records.item_files import write_items
from dare_eval.records.items import ItemRecord
from dare_eval.records.manifest import DatasetEntry, ModelEntry, RunManifest, read_manifest, write_manifest
from tests.records.record_kit import SPEC, records


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run folder with one model and one data set; keyword arguments change single settings."""

    def make(
        name: str, verdicts: Sequence[bool] | list[ItemRecord], *, model: str = "model", stamp: str = "20260101_000000",
        dataset: str = "toy", spec: dict[str, Any] | None = None, entry: dict[str, Any] | None = None, **maker: Any,
    ) -> Path:  # fmt: skip
        folder = tmp_path / "runs" / name / stamp
        items = (
            list(verdicts) if verdicts and isinstance(verdicts[0], ItemRecord) else records(verdicts, dataset=dataset)
        )
        write_items(folder / "records" / model / f"{dataset}.jsonl", items)
        facts = {"dataset": dataset, "split": "test", "prompt_hash": "ph", "content_hash": "ch", "scorer": "toy@1"}
        data = DatasetEntry(name=dataset, **(facts | {"expected": len(items)} | (entry or {})))
        weights = {"family": "llada", "weight_hash": f"hash-{name}"} | maker
        made = ModelEntry(name=model, decode_specs={dataset: SPEC | (spec or {})}, **weights)
        run_id = f"{name}/{stamp}"
        write_manifest(
            folder, RunManifest(run_id=run_id, kind="evaluation", status="finished", models=(made,), datasets=(data,))
        )
        return folder

    return make


@pytest.fixture
def change_manifest() -> Callable[..., None]:
    def change(folder: Path, **fields: Any) -> None:
        write_manifest(folder, dataclasses.replace(read_manifest(folder), **fields))

    return change
