"""Partitioners: what has to run, after everything of earlier runs was checked against its fingerprint.

``InferPartitioner`` plans inference and writes the manifest's first version; ``EvalPartitioner`` plans scoring. A
pair that cannot run is a recorded failure, and the others go on. Settings that are wrong refuse the whole run
before anything is decoded. Sizes of data sets come from the data, never from a cache.

    infer = dict(partitioner=dict(type=InferPartitioner, num_worker=2), ...)
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import Config
from opencompass.partitioners.base import BasePartitioner
from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.datasets.templates import with_template
from dare_eval.errors import DareError, UsageError
from dare_eval.evaluators.benchmarks import POLICY_KEY, with_policy
from dare_eval.inferencers.item_store import move_aside
from dare_eval.panels import show_error
from dare_eval.records.folder_lock import hold
from dare_eval.records.runs import TIMESTAMP
from dare_eval.runtime.chunks import Chunk, buckets, cut, missing
from dare_eval.runtime.data_paths import share_data_root
from dare_eval.runtime.devices import visible_devices
from dare_eval.runtime.dotted import dotted_types, resolve
from dare_eval.runtime.failures import failure_from, failure_of, record_failure, take_back
from dare_eval.runtime.limits import apply_limit, limit_of_environment
from dare_eval.runtime.manifests import start_manifest
from dare_eval.runtime.plan import Pair, check_combinations, check_scorer, plan_pair, score_settings
from dare_eval.runtime.preflight import joined
from dare_eval.runtime.reuse import adopt_unfinished, drop_stale, settle_predictions
from dare_eval.runtime.sidecars import read_sidecar

KEEP_KEYS = (
    "eval.runner.task.judge_cfg", "eval.runner.task.dump_details", "eval.runner.task.cal_extract_rate",
    "eval.runner.task.scorer", "eval.given_pred",
)  # fmt: skip


class _Partitioner(BasePartitioner):
    """Shared: checks of the config, shown as one panel when they fail."""

    def __init__(self, out_dir: str, keep_keys: list[str] | None = None) -> None:
        super().__init__(out_dir, keep_keys or list(KEEP_KEYS))

    def __call__(self, cfg: Any) -> list[Any]:
        """Return the tasks; ends the process with a panel and the error's exit code when the config is refused."""
        share_data_root()
        try:
            _check_folder(Path(cfg["work_dir"]))
            if not dry_run():
                hold(Path(cfg["work_dir"]))
            _import_runtime(cfg)
            tasks: list[Any] = super().__call__(_read_under_policy(_worded(_within_limit(cfg))))
        except DareError as error:
            show_error(error)
            raise SystemExit(error.exit_code) from None
        return tasks

    def _pairs(self, combinations: list[Any], work_dir: str, stage: str) -> Iterator[tuple[Any, Any, Pair]]:
        """Yield the pairs that can run; the others become recorded failures.

        Raises ``UsageError`` when a setting is wrong, after a look at every pair: one message lists all faults.
        """
        check_combinations(combinations)
        usable: list[tuple[Any, Any, Pair]] = []
        faults: dict[tuple[str, str], DareError] = {}  # of a model, once for all its data sets
        for combination in combinations:
            for model_cfg in combination["models"]:
                for dataset_cfg in combination["datasets"]:
                    names = {"model": model_abbr_from_cfg(model_cfg), "dataset": dataset_abbr_from_cfg(dataset_cfg)}
                    try:
                        usable.append((model_cfg, dataset_cfg, plan_pair(model_cfg, dataset_cfg)))
                    except DareError as error:
                        faults.setdefault((names["model"], str(error)), _about(error, **names))
                        if not isinstance(error, UsageError):
                            record_failure(work_dir, failure_from(error, stage=stage, **names))
        if any(isinstance(fault, UsageError) for fault in faults.values()):
            raise joined(UsageError, sorted(faults.values(), key=lambda fault: not isinstance(fault, UsageError)))
        yield from usable


class InferPartitioner(_Partitioner):
    """Plans inference.

    ``num_worker`` workers share the items of a model (default: as many as its ``run_cfg.num_gpus`` goes into the GPUs
    of this machine); a data set is cut into ``num_split`` parts (default: one per worker) of at least
    ``min_task_size`` items. ``adopt`` continues the newest unfinished run of the same
    settings in the same work folder.
    """

    def __init__(
        self,
        out_dir: str,
        num_worker: int | None = None,
        num_split: int | None = None,
        min_task_size: int = 16,
        adopt: bool = True,
        keep_keys: list[str] | None = None,
    ) -> None:
        super().__init__(out_dir, keep_keys)
        self.num_worker, self.num_split = num_worker, num_split
        self.min_task_size, self.adopt = min_task_size, adopt

    def partition(
        self, model_dataset_combinations: list[Any], work_dir: str, out_dir: str, add_cfg: dict[str, Any] | None = None
    ) -> list[Any]:
        """Return the inference tasks of what is missing."""
        if not dry_run():
            _take_back(model_dataset_combinations, work_dir)
        todo: dict[str, tuple[Any, list[Chunk]]] = {}
        planned = []
        for model_cfg, dataset_cfg, pair in self._pairs(model_dataset_combinations, work_dir, "plan"):
            planned.append((model_cfg, dataset_cfg, pair))
            parts = self.num_split or self._workers(model_cfg)
            chunks = cut(dataset_cfg, pair.dataset, len(pair.rows), parts, self.min_task_size)
            todo.setdefault(pair.model, (model_cfg, []))[1].extend(self._todo(pair, chunks, work_dir, out_dir))
        if not dry_run():
            start_manifest(Path(work_dir), model_dataset_combinations, planned)
        return [
            self._task(model_cfg, bucket, work_dir, add_cfg or {})
            for model_cfg, chunks in todo.values()
            for bucket in buckets(chunks, self._workers(model_cfg))
        ]

    def _workers(self, model_cfg: Any) -> int:
        need = int((model_cfg.get("run_cfg") or {}).get("num_gpus", 0))
        return self.num_worker or max(1, len(visible_devices()) // need if need else 1)

    def _todo(self, pair: Pair, chunks: list[Chunk], work_dir: str, out_dir: str) -> list[Chunk]:
        """Settle what earlier runs left and return the chunks that are still to run."""
        target = pair.target(out_dir)
        if dry_run():
            return [] if read_sidecar(target)["fingerprint"] == pair.fingerprint else chunks
        settle_predictions(target, pair.settings, pair.rows, pair.label)
        if self.adopt and not target.exists():
            adopt_unfinished(Path(work_dir), target, pair.fingerprint)
        return missing(chunks, target, len(pair.rows))

    def _task(self, model_cfg: Any, bucket: list[Chunk], work_dir: str, add_cfg: dict[str, Any]) -> Any:
        places = {chunk.dataset_cfg["abbr"]: chunk.place for chunk in bucket}
        datasets = [[chunk.dataset_cfg for chunk in bucket]]
        return Config({"models": [model_cfg], "datasets": datasets, "work_dir": work_dir, "dare": places, **add_cfg})


class EvalPartitioner(_Partitioner):
    """Plans scoring: one task per model and data set whose result is missing or was made with another evaluator."""

    def partition(
        self, model_dataset_combinations: list[Any], work_dir: str, out_dir: str, add_cfg: dict[str, Any] | None = None
    ) -> list[Any]:
        """Return the scoring tasks."""
        add_cfg = add_cfg or {}
        scorer = check_scorer(add_cfg.get("eval", {}).get("runner", {}).get("task", {}).get("scorer", "both"))
        if dry_run():
            return []
        tasks = []
        for model_cfg, dataset_cfg, pair in self._pairs(model_dataset_combinations, work_dir, "plan"):
            take_back(work_dir, pair.model, pair.dataset, stages=("score",))
            if failure_of(work_dir, pair.model, pair.dataset) is not None:
                continue
            settings = score_settings(pair, model_cfg, dataset_cfg, scorer)
            records = Path(work_dir) / "records" / pair.model / f"{pair.dataset}.jsonl"
            if not (drop_stale(pair.target(out_dir), settings, pair.label) and records.exists()):
                move_aside(pair.target(out_dir))
                move_aside(records)
                task = {"models": [model_cfg], "datasets": [[dataset_cfg]], "work_dir": work_dir, **add_cfg}
                tasks.append(Config(task))
        return tasks


def _about(error: DareError, model: str, dataset: str) -> DareError:
    """Return ``error`` with the names of the pair that it is about."""
    what = f"model '{model}' on '{dataset}': {error.what}"
    return type(error)(what, seen=error.seen, allowed=error.allowed, remedy=error.remedy)


def _check_folder(work_dir: Path) -> None:
    """Refuse to go on in a folder that is no run: ``-r`` takes the last name in the work folder, whatever it is."""
    if not TIMESTAMP.fullmatch(work_dir.name):
        runs = sorted(path.name for path in work_dir.parent.glob("*") if TIMESTAMP.fullmatch(path.name))
        raise UsageError(
            "the folder to reuse is no run",
            seen=work_dir,
            allowed="a time as in 20260131_093000" + (f", such as {runs[-1]}" if runs else ""),
            remedy=f"-r {runs[-1]}" if runs else "run without -r",
        )


def _import_runtime(cfg: Any) -> None:
    """Import the classes that OpenCompass builds after decoding, so that a broken one is found before it."""
    for part in ("infer", "eval", "summarizer"):
        for path in sorted(dotted_types(cfg.get(part) or {})):
            resolve("class", path)


def dry_run() -> bool:
    """Whether nothing may change: OpenCompass plans a dry run like any other and tells the partitioner nothing."""
    return "--dry-run" in sys.argv


def _take_back(combinations: list[Any], work_dir: str) -> None:
    """Forget the failures of earlier attempts: every pair is tried again."""
    for combination in combinations:
        for model_cfg in combination["models"]:
            for dataset_cfg in combination["datasets"]:
                take_back(work_dir, model_abbr_from_cfg(model_cfg), dataset_abbr_from_cfg(dataset_cfg))


def _within_limit(cfg: Any) -> Any:
    """Return ``cfg`` with every data set cut to ``DARE_LIMIT`` questions; itself where that is not set."""
    limit = limit_of_environment()
    if limit is None:
        return cfg
    cut = copy.deepcopy(cfg)
    combined = cut.get("model_dataset_combinations") or []
    apply_limit([*cut.get("datasets", []), *(one for entry in combined for one in entry["datasets"])], limit)
    return cut


def _worded(cfg: Any) -> Any:
    """Return ``cfg`` with every data set in the prompt template that ``template = k`` asks for; itself without."""
    number = cfg.get("template")
    if number is None:
        return cfg
    worded = copy.deepcopy(cfg)
    for part in (worded, *(worded.get("model_dataset_combinations") or [])):
        if part.get("datasets"):
            part["datasets"] = [with_template(one, number) for one in part["datasets"]]
    return worded


def _read_under_policy(cfg: Any) -> Any:
    """Return ``cfg`` with every data set read under the config's ``scoring_policy``; itself without one."""
    policy = cfg.get(POLICY_KEY)
    if not policy:
        return cfg
    changed = copy.deepcopy(cfg)
    for part in (changed, *(changed.get("model_dataset_combinations") or [])):
        if part.get("datasets"):
            part["datasets"] = [with_policy(one, policy) for one in part["datasets"]]
    return changed
