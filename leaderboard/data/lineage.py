"""Which checkpoint a result belongs to, what it was trained from, with which algorithm and seed, at what cost."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import RunManifest
from dare_eval.records.tables import Checkpoint
from leaderboard.data.board import Board, Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a model comes from, as far as it is recorded."""

    name: str
    weight_hash: str | None
    parent: str | None
    parent_hash: str | None
    algorithm: str | None
    recipe: str
    """Equal for checkpoints that differ in their seed only."""
    seed: int | None
    budget: Budget | None
    folder: Path | None
    """Checkpoint folder."""


@functools.lru_cache(maxsize=2)
def lineages(board: Board) -> Mapping[int, Lineage]:
    """Return the lineage of every result of ``board``, by result id."""
    checkpoints = {one.weight_hash: one for one in board.checkpoints}
    manifests = {run.id: RunManifest.from_dict(run.manifest) for run in board.runs.values() if run.manifest}
    return {cell.id: _lineage(cell, checkpoints, manifests.get(cell.evaluation)) for cell in board.cells}


def _lineage(cell: Cell, checkpoints: Mapping[str, Checkpoint], manifest: RunManifest | None) -> Lineage:
    known = checkpoints.get(cell.weight_hash or "")
    if known is not None and known.algorithm is not None:
        return _of_checkpoint(known)
    entry = manifest.model(cell.model) if manifest else None
    if entry is None:
        return _plain(cell.model, cell.weight_hash)
    return Lineage(
        name=known.name if known else cell.model,
        weight_hash=cell.weight_hash,
        parent=entry.parent,
        parent_hash=entry.parent_hash,
        algorithm=entry.algorithm,
        recipe=f"unknown recipe of {cell.model}",
        seed=None,
        budget=None,
        folder=Path(entry.model_id) if entry.model_id else None,
    )


def _of_checkpoint(known: Checkpoint) -> Lineage:
    manifest = RunManifest.from_dict(known.manifest) if known.manifest else None
    seeds: Mapping[str, Any] = manifest.seeds if manifest else {}
    return Lineage(
        name=known.name,
        weight_hash=known.weight_hash,
        parent=known.parent,
        parent_hash=known.parent_hash,
        algorithm=known.algorithm,
        recipe=_recipe(manifest) or f"unknown recipe of {known.folder}",
        seed=seeds.get("training"),
        budget=manifest.budget if manifest else None,
        folder=Path(known.folder),
    )


def _recipe(manifest: RunManifest | None) -> str | None:
    config = dict(manifest.config) if manifest else {}
    for name in ("seed", "output_dir", "evaluation"):
        config.pop(name, None)
    return json.dumps(config, sort_keys=True, default=str) if config else None


def _plain(name: str, weights: str | None) -> Lineage:
    return Lineage(
        name=name,
        weight_hash=weights,
        parent=None,
        parent_hash=None,
        algorithm=None,
        recipe="",
        seed=None,
        budget=None,
        folder=None,
    )
