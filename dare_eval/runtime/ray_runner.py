"""``RayRunner``: tasks of a run spread over the machines of a Ray cluster (extra ``ray``), or over this one.

    from dare_eval.runtime.ray_runner import RayRunner
    infer["runner"] = dict(type=RayRunner, address="auto", task=infer["runner"]["task"])

One worker per group of ``run_cfg.num_gpus`` GPUs (``max_num_workers`` without any); a worker pulls one task after the
other and keeps its model while the next task wants the same. A worker or node that dies gives its task back, at most
``retries`` times; items it had decoded are in the run folder and are not decoded again. Leaves out placement, which is
Ray's, and moving files: the run folder, checkpoints and data must be on a file system that all machines share.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencompass.registry import RUNNERS, TASKS
from opencompass.runners.base import BaseRunner
from opencompass.utils import get_logger, model_abbr_from_cfg

from dare_eval.errors import SetupError, UsageError
from dare_eval.runtime.devices import settled
from dare_eval.runtime.fork_runner import Job, needs_interpreter, record_lost

PASSED_ON = ("DARE_", "HF_", "COMPASS_", "OMP_", "TOKENIZERS_", "PYTHONPATH", "OPENAI_")
"""Beginnings of the environment variables that workers on other machines get too."""


@dataclass(slots=True)
class RayJob(Job):
    """A task and how often a worker has begun it."""

    tries: int = 0


class RayWorker:
    """Runs in a process of its own on some machine; Ray makes an actor of it."""

    def __init__(self, folder: str, environment: dict[str, str], task_type: Any) -> None:
        os.chdir(folder)
        os.environ.update(environment)
        self.task_type = task_type
        self.model: Any = None
        self.model_cfg: Any = None

    def run(self, task_cfg: Any, log: str) -> int:
        """Run one task and return its exit code; its output goes to ``log``."""
        task = TASKS.build({"cfg": task_cfg, "type": self.task_type})
        with _written_to(Path(log)):
            if needs_interpreter(task):
                return self._in_subprocess(task, Path(log))
            return self._here(task)

    def _here(self, task: Any) -> int:
        kept: dict[str, Any] = {}
        wanted = task.model_cfgs[0] if task.model_cfgs else None
        if (
            "cur_model" in inspect.signature(task.run).parameters
            and self.model is not None
            and wanted == self.model_cfg
        ):
            kept = {"cur_model": self.model, "cur_model_abbr": model_abbr_from_cfg(wanted)}
        else:
            self.model = None  # the memory of the last model goes before the next is read
        try:
            task.run(**kept)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except Exception:
            get_logger().exception(f"task {task.name} raised")
            code = 1
        self.model, self.model_cfg = getattr(task, "model", None), wanted
        return code

    def _in_subprocess(self, task: Any, log: Path) -> int:
        params = log.with_suffix(".params.py")
        task.cfg.dump(str(params))
        command = task.get_command(cfg_path=shlex.quote(str(params.resolve())), template="{task_cmd}")
        return subprocess.run(shlex.split(command), check=False).returncode


@RUNNERS.register_module()
class RayRunner(BaseRunner):
    """Runner of OpenCompass over a Ray cluster.

    ``address`` as for ``ray.init``: None starts Ray on this machine, ``auto`` joins the running cluster. Raises
    ``SetupError`` when ray is not installed and ``UsageError`` for a task that no machine can hold.
    """

    def __init__(
        self,
        task: Any,
        address: str | None = None,
        retries: int = 2,
        max_num_workers: int = 2,
        debug: bool = False,
        lark_bot_url: str | None = None,
    ) -> None:
        super().__init__(task=task, debug=debug, lark_bot_url=lark_bot_url)
        self.keys: set[str] = set()
        for name, value, least in (("retries", retries, 0), ("max_num_workers", max_num_workers, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UsageError(f"RayRunner's {name} is out of range", seen=repr(value), allowed=f">= {least}")
        self.address, self.retries, self.max_num_workers = address, retries, max_num_workers

    def launch(self, tasks: list[Any]) -> list[tuple[str, int]]:
        """Run all tasks and return ``(name, exit code)`` of each."""
        ray = _ray()
        self.keys = {name for cfg in tasks for model in cfg["models"] for name in _key_names(model)}
        with _connected(ray, self.address, self.max_num_workers):
            gpus = int(ray.cluster_resources().get("GPU", 0))
            jobs = [self._job(settled(cfg, gpus)) for cfg in tasks]
            status: list[tuple[str, int]] = []
            for need in sorted({job.task.num_gpus for job in jobs}, reverse=True):
                group = [job for job in jobs if job.task.num_gpus == need]
                status += self._run_group(ray, group, need, gpus)
        return status

    def _job(self, cfg: Any) -> RayJob:
        task = TASKS.build({"cfg": cfg, "type": self.task_cfg["type"]})
        log = task.get_log_path(file_extension="out")
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        return RayJob(task, cfg, log=str(Path(log).resolve()))

    def _run_group(self, ray: Any, jobs: list[RayJob], need: int, gpus: int) -> list[tuple[str, int]]:
        """Run the tasks that want ``need`` GPUs each."""
        places = gpus // need if need else self.max_num_workers
        if not places:
            raise UsageError(
                "no group of GPUs in the cluster is large enough",
                seen=f"{gpus} GPUs, a model that wants {need}",
                remedy="lower run_cfg.num_gpus, or join a larger cluster (address)",
            )
        waiting = deque(jobs)
        running: dict[Any, tuple[RayJob, Any]] = {}
        status: list[tuple[str, int]] = []
        for _ in range(min(places, len(jobs))):
            self._next(ray, waiting, running, self._worker(ray, need))
        while running:
            done, _ = ray.wait(list(running), num_returns=1)
            job, worker = running.pop(done[0])
            code = self._outcome(ray, done[0], job)
            if code is None:
                worker = self._worker(ray, need)
                waiting.append(job)
            else:
                status.append((job.task.name, code))
                if code < 0:
                    worker = self._worker(ray, need) if waiting else None
            self._next(ray, waiting, running, worker)
        return status

    def _worker(self, ray: Any, need: int) -> Any:
        passed = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON) or key in self.keys}
        made = ray.remote(RayWorker).options(num_gpus=need, num_cpus=0 if need else 1, max_restarts=0)
        return made.remote(str(Path.cwd()), passed, self.task_cfg["type"])

    @staticmethod
    def _next(ray: Any, waiting: deque[RayJob], running: dict[Any, tuple[RayJob, Any]], worker: Any) -> None:
        """Give a free worker its next task, or let it go."""
        if worker is None:
            return
        if not waiting:
            ray.kill(worker)
            return
        job = waiting.popleft()
        job.tries += 1
        running[worker.run.remote(job.task_cfg, job.log)] = (job, worker)

    def _outcome(self, ray: Any, reference: Any, job: RayJob) -> int | None:
        """Return the exit code of a task, or None when its worker died and it gets another one."""
        try:
            code = int(ray.get(reference))
        except ray.exceptions.RayTaskError as error:
            # The task's own errors are caught where it runs: this is one of the worker itself.
            get_logger().error(f"task {job.task.name} could not be run: {error}")
            record_lost(job, 1)
            return 1
        except ray.exceptions.RayError as error:
            if job.tries <= self.retries:
                get_logger().warning(f"task {job.task.name} lost its worker and starts again: {error}")
                return None
            get_logger().error(f"task {job.task.name} lost its worker {job.tries} times, see {job.log}")
            record_lost(job, -9)
            return -9
        if code:
            get_logger().error(f"task {job.task.name} failed with code {code}, see {job.log}")
        return code


def _key_names(model_cfg: Any) -> list[str]:
    """Return the environment variables that a model's config names for the key of its server."""
    found = [model_cfg.get("key_env"), (model_cfg.get("server") or {}).get("key_env")]
    return [str(name) for name in found if name]


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise SetupError(
            "ray is not installed", seen=str(error), remedy="pip install 'dare[ray]', or use ForkRunner"
        ) from error
    return ray


@contextlib.contextmanager
def _connected(ray: Any, address: str | None, cpus: int) -> Iterator[None]:
    """Join the cluster, and leave it again unless somebody else had joined it."""
    before = ray.is_initialized()
    if not before:
        own = {} if address else {"num_cpus": max(cpus, os.cpu_count() or 1), "include_dashboard": False}
        try:
            ray.init(address=address, log_to_driver=False, **own)
        except Exception as error:  # Ray raises bare ones too, such as for a start that takes too long
            raise SetupError(
                "the Ray cluster cannot be joined" if address else "Ray does not start on this machine",
                seen=f"address = {address!r}: {error}",
                allowed="None (this machine), auto, or HOST:PORT of a running cluster",
                remedy="ray start --head there, or use ForkRunner",
            ) from error
    try:
        yield
    finally:
        if not before:
            ray.shutdown()


@contextlib.contextmanager
def _written_to(log: Path) -> Iterator[None]:
    """Let standard output and error of this process go to a file, added to what an earlier try wrote."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for old, descriptor in zip(kept, (1, 2), strict=True):
                os.dup2(old, descriptor)
                os.close(old)
