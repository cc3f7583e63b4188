"""``ForkRunner``: runs tasks in forked children of the one interpreter that has already imported everything.

Importing OpenCompass costs several CPU seconds; upstream's runner pays them again for each task. Forking is done
from the main thread only, with no thread pool and with a fresh tqdm lock in the child (a lock held by another thread
at the fork would never be released there). The parent never initialises CUDA: devices are counted without it and
each child sees its own through ``CUDA_VISIBLE_DEVICES``. Tasks that start engines or several processes per model
run as ordinary subprocesses. A child that dies leaves a failure record, the other tasks go on, and the data sets that
a killed child had not begun go to a new one.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opencompass.registry import TASKS
from opencompass.runners import LocalRunner
from opencompass.utils import dataset_abbr_from_cfg, get_logger, model_abbr_from_cfg

from dare_eval.errors import SetupError
from dare_eval.inferencers.item_store import item_files
from dare_eval.runtime.devices import settled, visible_devices
from dare_eval.runtime.dotted import dotted_types, resolve
from dare_eval.runtime.failures import Failure, failure_of, record_failure

SPAWNING = re.compile(r"lmdeploy|turbomind|sglang|vllm", re.IGNORECASE)
"""Model classes whose engines start processes of their own: they get a fresh interpreter."""


@dataclass(slots=True)
class Job:
    """One task and, while it runs, where."""

    task: Any
    task_cfg: Any
    devices: list[str] = field(default_factory=list)
    log: str = ""
    param_file: Path | None = None


class ForkRunner(LocalRunner):
    """Local runner without repeated start-up.

    A task takes ``run_cfg.num_gpus`` devices, and as many run at a time as the machine has; of the tasks that need no
    GPU ``max_num_workers`` do. ``--debug`` runs in this process as upstream does.
    """

    def launch(self, tasks: list[Any]) -> list[tuple[str, int]]:
        """Run all tasks and return ``(name, exit code)`` of each; a negative code is a signal."""
        tasks = [settled(cfg, len(visible_devices())) for cfg in tasks]
        if self.debug:
            found: list[tuple[str, int]] = super().launch(tasks)
            return found
        _import_ahead(tasks)
        waiting = [Job(TASKS.build({"cfg": cfg, "type": self.task_cfg["type"]}), cfg) for cfg in tasks]
        free = visible_devices() * self.max_workers_per_gpu
        running: dict[int, Job] = {}
        status: list[tuple[str, int]] = []
        try:
            while waiting or running:
                self._start_ready(waiting, running, free)
                if running:
                    status += self._reap(waiting, running, free, len(tasks))
        except BaseException:
            _end(running)
            raise
        return status

    def _start_ready(self, waiting: list[Job], running: dict[int, Job], free: list[str]) -> None:
        for job in list(waiting):
            need = job.task.num_gpus
            if not need and sum(not other.devices for other in running.values()) >= self.max_num_workers:
                continue
            if need > len(set(free)) and not running:
                waiting.remove(job)
                _record_no_device(job, need, len(set(free)))
            elif need <= len(set(free)):
                waiting.remove(job)
                job.devices = _take(free, need)
                job.log = job.task.get_log_path(file_extension="out")
                Path(job.log).parent.mkdir(parents=True, exist_ok=True)
                running[self._start(job)] = job

    def _start(self, job: Job) -> int:
        if needs_interpreter(job.task):
            return self._start_subprocess(job)
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            _run_child(job, self.max_num_workers, parent)
        return child

    def _start_subprocess(self, job: Job) -> int:
        job.param_file = Path("tmp") / f"{os.getpid()}_{id(job)}_params.py"
        job.param_file.parent.mkdir(exist_ok=True)
        job.task.cfg.dump(str(job.param_file))
        command = job.task.get_command(cfg_path=shlex.quote(str(job.param_file.resolve())), template="{task_cmd}")
        with Path(job.log).open("w") as log:
            process = subprocess.Popen(shlex.split(command), stdout=log, stderr=log, env=_environment(job))
        process.returncode = 0  # this runner reaps it, so that Popen's destructor does not wait for it
        return process.pid

    def _reap(self, waiting: list[Job], running: dict[int, Job], free: list[str], total: int) -> list[tuple[str, int]]:
        child, raw = os.wait()
        job = running.pop(child, None)
        if job is None:  # a child of some library: none of ours
            return []
        code = os.waitstatus_to_exitcode(raw)
        free.extend(job.devices)
        if job.param_file is not None and not self.keep_tmp_file:
            job.param_file.unlink(missing_ok=True)
        if code:
            get_logger().error(f"task {job.task.name} failed with code {code}, see {job.log}")
            later = _behind_the_killer(job) if code < 0 else []
            record_lost(job, code, spared=later)
            if later:
                waiting.append(self._rest_of(job, later))
        get_logger().info(f"{total - len(waiting) - len(running)} of {total} tasks finished")
        return [(job.task.name, code)]

    def _rest_of(self, job: Job, abbrs: list[str]) -> Job:
        """Return the job of the data sets that a killed worker did not reach."""
        rest = copy.deepcopy(job.task_cfg)
        rest["datasets"] = [[cfg for cfg in job.task.dataset_cfgs[0] if dataset_abbr_from_cfg(cfg) in abbrs]]
        get_logger().info(f"{len(abbrs)} data sets behind the one that killed the worker go to a new one")
        return Job(TASKS.build({"cfg": rest, "type": self.task_cfg["type"]}), rest)


def needs_interpreter(task: Any) -> bool:
    """Whether ``task`` must not run in a fork: several processes per model, or an engine that spawns its own.

    A client of a server (``url``) starts nothing.
    """
    kinds = [str(cfg.get("type", "")) for cfg in task.model_cfgs if hasattr(cfg, "get") and not cfg.get("url")]
    return task.num_gpus > 1 or any(SPAWNING.search(kind) for kind in kinds)


def _run_child(job: Job, workers: int, parent: int) -> None:
    """Run the task in this forked process and end the process; never returns."""
    code = 1
    try:
        _die_with(parent)
        with Path(job.log).open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.environ.update(_environment(job))
        _fresh_locks(workers)
        job.task.run()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        get_logger().exception(f"task {job.task.name} raised")
    finally:
        with contextlib.suppress(OSError, ValueError):  # a full disk or a closed stream must not change the code
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _environment(job: Job) -> dict[str, str]:
    environment = dict(os.environ)
    if job.devices or job.task.num_gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(job.devices)
    return environment


def _fresh_locks(workers: int) -> None:
    import torch
    from tqdm import tqdm  # type: ignore[import-untyped]

    tqdm.set_lock(threading.RLock())
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // max(1, workers)))


def _die_with(parent: int) -> None:
    """Ask the kernel to end this process when its parent dies: a killed run must leave no worker behind."""
    import ctypes

    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(1)


def _import_ahead(tasks: Sequence[Any]) -> None:
    """Import what the tasks name, once for all children; a failure is the child's to report."""
    for path in sorted(set().union(*(dotted_types(cfg.to_dict()) for cfg in tasks))):
        with contextlib.suppress(SetupError):
            resolve("class", path)


def _behind_the_killer(job: Job) -> list[str]:
    """Return the abbrs of the data sets that a killed worker had not begun.

    None when it died before its first item: then the model is the likely cause, and each data set would kill again.
    """
    if len(job.task.model_cfgs) != 1 or job.task.output_subdir != "predictions":
        return []
    open_ones = [
        (cfg, output, common["dataset"])
        for cfg, (common, output) in zip(job.task.dataset_cfgs[0], _pairs(job), strict=True)
        if not output.exists() and failure_of(job.task.work_dir, common["model"], common["dataset"]) is None
    ]
    begun = len(open_ones) < len(job.task.dataset_cfgs[0]) or _saved(open_ones[0][1], open_ones[0][2])
    return [dataset_abbr_from_cfg(cfg) for cfg, *_ in open_ones[1:]] if begun else []


def _saved(output: Path, dataset: str) -> int:
    """Return how many items of a data set were decoded and kept."""
    return sum(path.read_bytes().count(b"\n") for path in item_files(output.parent, dataset))


def record_lost(job: Job, code: int, spared: Sequence[str] = ()) -> None:
    """Record a failure for each pair of a dead worker that has no output, failure of its own or new worker."""
    how = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
    cfgs = [cfg for dataset_cfgs in job.task.dataset_cfgs for cfg in dataset_cfgs]
    for cfg, (common, output) in zip(cfgs, _pairs(job), strict=True):
        if not output.exists() and dataset_abbr_from_cfg(cfg) not in spared:
            saved = _saved(output, common["dataset"])
            decoding = job.task.output_subdir == "predictions"
            failure = Failure(
                cause=f"the worker ended with {how}",
                item=f"about {saved}" if decoding else "",
                seen=f"{saved} items were decoded and are kept" if decoding else "",
                remedy="signal 9 is usually a lack of memory; run the same command again: only what is missing runs",
                log=job.log,
                **common,
            )
            record_failure(job.task.work_dir, failure)


def _record_no_device(job: Job, need: int, have: int) -> None:
    for common, _ in _pairs(job):
        failure = Failure(
            cause=f"the model wants {need} GPUs",
            seen=f"{have} GPUs are visible",
            remedy="set run_cfg=dict(num_gpus=...) in the model config to what the machine has (0 runs on the CPU)",
            **common,
        )
        record_failure(job.task.work_dir, failure)


def _pairs(job: Job) -> Iterator[tuple[dict[str, str], Path]]:
    """Yield what names each pair of a task, and its output file."""
    outputs = iter(job.task.get_output_paths())
    for model_cfg, dataset_cfgs in zip(job.task.model_cfgs, job.task.dataset_cfgs, strict=True):
        for dataset_cfg in dataset_cfgs:
            name = dataset_abbr_from_cfg(dataset_cfg)
            base = job.task_cfg.get("dare", {}).get(name, {}).get("base", name)
            yield {"model": model_abbr_from_cfg(model_cfg), "dataset": base, "stage": "worker"}, Path(next(outputs))


def _take(free: list[str], need: int) -> list[str]:
    """Take ``need`` different devices out of ``free``."""
    taken = list(dict.fromkeys(free))[:need]
    for name in taken:
        free.remove(name)
    return taken


def _end(running: dict[int, Job]) -> None:
    for child in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    for child in running:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
