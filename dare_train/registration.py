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

from dare_eval.errors import DataError, UsageError
from dare_eval.records.ledger import Budget
from dare_eval.records.manifest import ModelEntry, RunManifest, now, read_manifest, update_manifest, write_manifest
from dare_eval.records.provenance import environment, weight_hash

if TYPE_CHECKING:
    from dare_train.engine.loop import TrainState
    from dare_train.run import Prepared

HASHES = ("content_hash", "first_rows_hash")
"""What the record of the rows says about their content: of all of them, or of the first ones of a stream."""


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


def check_same_origin(folder: Path, prepared: Prepared) -> None:
    """Refuse to go on with other rows or another base than the run began with: the result would be of neither.

    Raises ``UsageError``. A folder whose manifest is gone is not judged.
    """
    try:
        began = read_manifest(folder)
    except DataError:
        return
    if not began.models:
        return
    record, base = prepared.rows.record, prepared.plan.folder
    now_is = {name: record.get(name) for name in HASHES} | {"base": weight_hash(base) if base else None}
    then_was = {name: began.data.get(name) for name in HASHES} | {"base": began.models[0].parent_hash}
    changed = [name for name, value in now_is.items() if then_was[name] not in (None, value)]
    if changed:
        what = "the base checkpoint" if changed == ["base"] else "the training rows"
        raise UsageError(
            f"{what} changed since this run began",
            seen=f"{folder}: {', '.join(f'{name} {str(now_is[name])[:12]}' for name in changed)}",
            allowed=", ".join(f"{name} {str(then_was[name])[:12]}" for name in changed),
            remedy="restore them to go on; --fresh moves the old run aside and starts again",
        )


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
