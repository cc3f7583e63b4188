"""The manifest of a training run: what was trained from what, on which rows, with which settings, at what cost.

Written when the run starts (status ``running``) and completed when it ends, so a killed run is visible as such.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError
from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import ModelEntry, RunManifest, now, read_manifest, update_manifest, write_manifest
from dare_eval.records.provenance import environment, weight_hash

if TYPE_CHECKING:
    from dare_train.engine.loop import TrainState
    from dare_train.run import Prepared


def start_manifest(folder: Path, prepared: Prepared, name: str, algorithm: Any) -> None:
    """Write the manifest of a run that begins; a continued run keeps the time it first started."""
    config = prepared.config
    settings = json.loads(config.model_dump_json())
    entry = ModelEntry(
        name=folder.name,
        model_id=str(folder / "model"),
        family=prepared.plan.config.family,
        parent=config.model.base,
        parent_hash=weight_hash(prepared.plan.folder) if prepared.plan.folder else None,
        algorithm=name,
        config={**settings, "resolved_method": algorithm.describe()},
    )
    manifest = RunManifest(
        run_id=f"{folder.parent.name}/{folder.name}",
        kind="training",
        models=(entry,),
        seeds={"training": config.seed},
        config=settings,
        data=dict(prepared.rows.record),
        environment=_environment(prepared),
        started=_started(folder) or now(),
    )
    write_manifest(folder, manifest)


def finish_manifest(
    folder: Path,
    state: TrainState,
    *,
    status: str,
    model: Path | None = None,
    data: Mapping[str, Any] | None = None,
) -> RunManifest:
    """Add cost, status and (for a finished run) the hash of the exported weights.

    ``data`` replaces what was known of the rows at the start: a stream has met more of them since.
    """
    spent = state.counters
    budget = Budget(
        prompts=int(spent.rows),
        training_forwards=int(spent.forwards),
        training_tokens=int(spent.tokens),
        optimizer_steps=state.step,
        wall_s=round(spent.wall_s, 3),
        peak_mem_gib=round(peak_memory_gib(), 3),
    )
    # What rollouts cost, where the algorithm makes some.
    more = {name: int(value) for name, value in getattr(state.algorithm, "spent", {}).items()}
    budget = dataclasses.replace(budget, **more)

    def change(manifest: RunManifest) -> RunManifest:
        entry = manifest.models[0]
        if model is not None:
            entry = dataclasses.replace(entry, weight_hash=weight_hash(model))
        known = manifest.data if data is None else {**manifest.data, **data}
        return dataclasses.replace(manifest, status=status, models=(entry,), data=known, budget=budget, finished=now())

    return update_manifest(folder, change)


def peak_memory_gib() -> float:
    """Return the largest memory of this process so far (of its GPU where it has one)."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _environment(prepared: Prepared) -> dict[str, Any]:
    import torch

    found = environment(
        device=prepared.device, dtype=prepared.config.model.dtype, attn_backend=prepared.config.train.attn_backend
    )
    counts = {"torch_threads": torch.get_num_threads(), "processes": prepared.world.processes, "cpus": os.cpu_count()}
    return {**found, **counts}


def _started(folder: Path) -> str | None:
    try:
        return read_manifest(folder).started
    except DataError:  # a fresh folder has none; a damaged one is written anew
        return None
