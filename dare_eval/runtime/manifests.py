"""Writes the run's ``manifest.json``: a first version when the run is planned, the last one with the report."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg
from opencompass.utils.prompt import get_prompt_hash

from dare_eval.datasets.templates import template_name
from dare_eval.errors import DareError, DataError
from dare_eval.evaluators.benchmarks import benchmark_of, policy_of
from dare_eval.evaluators.planning import GRADED
from dare_eval.evaluators.score import METRIC
from dare_eval.records.manifest import (
    MANIFEST_NAME,
    DatasetEntry,
    ModelEntry,
    RunManifest,
    now,
    read_manifest,
    update_manifest,
    write_manifest,
)
from dare_eval.records.provenance import environment
from dare_eval.runtime.built import content_hash, dataset_name, rows_of, split_of
from dare_eval.runtime.limits import subset_of
from dare_eval.runtime.model_facts import STRIPPED
from dare_eval.runtime.plan import Pair
from dare_eval.runtime.sidecars import plain
from dare_eval.scoring.policy import concerning, metric_under


def start_manifest(work_dir: Path, combinations: Sequence[Any], planned: Sequence[tuple[Any, Any, Pair]]) -> None:
    """Write the manifest of a run that begins (or goes on: its start and its own entries are kept)."""
    manifest = RunManifest(
        run_id=f"{work_dir.parent.name}/{work_dir.name}",
        kind="evaluation",
        status="running",
        models=_models(combinations, planned),
        datasets=_datasets(combinations),
        seeds={pair.model: int(pair.facts.decode_spec.get("seed", 0)) for _, _, pair in planned},
        environment=environment(device="", dtype="", attn_backend=""),
        started=now(),
    )
    try:
        before = read_manifest(work_dir)
        manifest = dataclasses.replace(manifest, started=before.started, extra=before.extra)
    except DataError:  # the first start, or a manifest of another version that this run replaces
        pass
    write_manifest(work_dir, manifest)


def finish_manifest(work_dir: Path, status: str, wall_s: float | None) -> None:
    """Set the run's last state; does nothing where no manifest was planned (upstream's partitioner)."""

    def change(manifest: RunManifest) -> RunManifest:
        budget = dataclasses.replace(manifest.budget, wall_s=wall_s)
        return dataclasses.replace(manifest, status=status, finished=now(), budget=budget)

    if (work_dir / "manifest.json").exists():
        update_manifest(work_dir, change)


def note_device(work_dir: Path, device: Mapping[str, str]) -> None:
    """Store device, dtype and attention backend that a worker really used."""

    def change(manifest: RunManifest) -> RunManifest:
        return dataclasses.replace(manifest, environment={**manifest.environment, **device})

    if (work_dir / "manifest.json").exists():
        update_manifest(work_dir, change)


def _models(combinations: Sequence[Any], planned: Sequence[tuple[Any, Any, Pair]]) -> tuple[ModelEntry, ...]:
    entries: dict[str, ModelEntry] = {}
    for model_cfg in (cfg for combination in combinations for cfg in combination["models"]):
        name = model_abbr_from_cfg(model_cfg)
        settings = plain({key: value for key, value in model_cfg.items() if key not in STRIPPED})
        entries[name] = ModelEntry(name=name, model_id=str(model_cfg.get("path", "")), config=settings)
    for _, _, pair in planned:
        known = entries[pair.model]
        specs = {**known.decode_specs, pair.dataset: pair.facts.decode_spec}
        entries[pair.model] = dataclasses.replace(
            known,
            family=pair.facts.family,
            weight_hash=pair.facts.weight_hash,
            decode_specs=specs,
            **_origin(pair.facts.folder),
        )
    return tuple(entries.values())


def _origin(folder: str) -> dict[str, Any]:
    """Return parent and algorithm out of the training manifest of a checkpoint, where it has one."""
    if not folder or not (Path(folder) / MANIFEST_NAME).exists():
        return {}
    try:
        trained = read_manifest(Path(folder)).models
    except DataError:  # made by another version: nothing is known of it
        return {}
    if not trained:
        return {}
    return {name: getattr(trained[0], name) for name in ("parent", "parent_hash", "algorithm")}


def _datasets(combinations: Sequence[Any]) -> tuple[DatasetEntry, ...]:
    entries: dict[str, DatasetEntry] = {}
    for dataset_cfg in (cfg for combination in combinations for cfg in combination["datasets"]):
        name = dataset_abbr_from_cfg(dataset_cfg)
        entries[name] = DatasetEntry(
            name=name,
            dataset=dataset_name(dataset_cfg),
            split=split_of(dataset_cfg),
            prompt_hash=prompt_hash(dataset_cfg),
            template=template_name(dataset_cfg),
            subset=subset_of(dataset_cfg),
            **_scored_by(dataset_cfg),
            **_size(dataset_cfg),
        )
    return tuple(entries.values())


def _scored_by(dataset_cfg: Any) -> dict[str, Any]:
    """Return scorer and metric names of a data set; upstream's evaluator where we have no scorer."""
    benchmark = benchmark_of(dataset_cfg)
    evaluator = dataset_cfg.get("eval_cfg", {}).get("evaluator", {})
    kind = evaluator.get("kind") or (benchmark.kind if benchmark else None)
    if kind is None:
        name = str(evaluator.get("type", "")).rpartition(".")[2]
        return {"scorer": f"{name}@{version('opencompass')}"}
    own = metric_under(evaluator.get("metric", METRIC), concerning(kind, policy_of(dataset_cfg)))
    metric = own if evaluator.get("kind") else benchmark.metric if benchmark else "accuracy"
    graded = GRADED.get(kind)
    return {"scorer": f"{kind}@{version('dare')}", "metric": metric, "graded_metric": graded}


def _size(dataset_cfg: Any) -> dict[str, Any]:
    try:
        return {"content_hash": content_hash(dataset_cfg), "expected": len(rows_of(dataset_cfg))}
    except DareError:  # recorded as a failure of each pair
        return {}


def prompt_hash(dataset_cfg: Any) -> str:
    """Return upstream's prompt hash; the config is copied first, since upstream's function changes it."""
    return str(get_prompt_hash(copy.deepcopy(dataset_cfg)))
