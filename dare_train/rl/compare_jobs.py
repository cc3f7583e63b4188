"""Carries out the runs of a comparison, each in processes of its own: train stage by stage, evaluate, note the cost.

A job that is finished is not repeated, an interrupted one goes on. Jobs share nothing, so they may run side by side
(``--nproc``) or on other machines that see the same folders (``--ray``).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from dare_eval.errors import DareError, IncompleteError, SetupError
from dare_eval.records.atomic import read_json, write_atomic, write_json
from dare_train.rl.compare_config import BudgetSettings
from dare_train.rl.compare_plan import Row, Stage
from dare_train.rl.probe import steps_of
from dare_train.settings import to_yaml

TAIL = 2000
STOPPING = threading.Event()
"""Set when the comparison is interrupted: jobs begin nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row with one seed."""

    row: Row
    seed: int
    folder: Path
    steps: Mapping[str, int]
    """Optimizer steps of bounded stages."""
    heldout_points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a job left: its last training run (None for a base) and its evaluation."""

    row: str
    seed: int
    training: str | None
    evaluation: str
    cpu_s: float
    """CPU seconds of all training processes, start-up included."""


def measure(stage: Stage, budget: BudgetSettings, folder: Path) -> dict[str, Any]:
    """Return the cost of a step of ``stage`` and the steps the budget pays for; measured once per folder."""
    known = folder / "costs" / f"{stage.name}.json"
    wanted = {"currency": budget.currency, "amount": budget.amount}
    if known.is_file():
        found: dict[str, Any] = read_json(known, "the measured costs")
        if found["budget"] == wanted:
            return found
    config = stage.config(seed=0, folder=folder / "costs" / stage.name, base=None)
    path = known.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, to_yaml(config))
    command = [sys.executable, "-m", "dare_train.rl.probe", stage.verb, str(path)]
    done = subprocess.run(command, env=quiet_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise IncompleteError(f"stage '{stage.name}' cannot be measured", seen=done.stderr[-TAIL:])
    costs = json.loads(done.stdout.splitlines()[-1])
    found = {"budget": wanted, "costs": costs, "steps": steps_of(costs, budget.currency, budget.amount)}
    write_json(known, found)
    return found


def run_job(job: Job) -> Done:
    """Train and evaluate one row with one seed; raises ``IncompleteError`` with the end of the log."""
    model, training, cpu_s = job.row.base, None, 0.0
    for place, stage in enumerate(job.row.stages):
        folder = job.folder / f"{place + 1}_{stage.name}"
        config = stage.config(
            seed=job.seed, folder=folder, base=model if place else None, steps=job.steps.get(stage.name)
        )
        every = max(1, config.train.max_steps // job.heldout_points)
        config = config.model_copy(update={"train": config.train.model_copy(update={"eval_every": every})})
        path = job.folder / f"{folder.name}.yaml"
        job.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, to_yaml(config))
        if not (folder / "model" / "config.json").is_file():
            cpu_s += _trained([stage.verb, "--config", str(path)], job.folder / f"{folder.name}.log")
            write_json(job.folder / f"{folder.name}.cost.json", {"cpu_s": cpu_s})
        training, model = str(folder), str(folder / "model")
        cpu_s = _noted_cpu(job.folder / f"{folder.name}.cost.json", cpu_s)
    return Done(
        row=job.row.name, seed=job.seed, training=training, evaluation=_evaluated(job, model, training), cpu_s=cpu_s
    )


def run_jobs(jobs: Sequence[Job], console: Console, *, nproc: int, ray: bool) -> tuple[list[Done], list[str]]:
    """Carry out all jobs and return what came of them, and what failed; one that fails does not stop the others."""
    start = _ray_runner(len(jobs)) if ray else None
    done: list[Done] = []
    failed: list[str] = []
    STOPPING.clear()
    before = _children()
    with _ended_like_ctrl_c(), ThreadPoolExecutor(max_workers=len(jobs) if ray else nproc) as pool:
        waiting = [(job, pool.submit(start or run_job, job)) for job in jobs]
        try:
            for job, future in waiting:
                try:
                    done.append(future.result())
                except (DareError, OSError) as error:
                    failed.append(f"{job.row.name}, seed {job.seed}: {error}")
                    why = error.what if isinstance(error, DareError) else error
                    console.print(f"failed: {job.row.name}, seed {job.seed}: {why}", style="red", soft_wrap=True)
                    continue
                console.print(f"done: {job.row.name}, seed {job.seed}", highlight=False)
        except BaseException:
            # Interrupted (or a mistake of this program): jobs that wait never begin, those at work save and end.
            STOPPING.set()
            pool.shutdown(wait=False, cancel_futures=True)
            _interrupt(_children() - before)
            raise
    return done, failed


@contextlib.contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM interrupt this process as Ctrl-C does: by default it would end alone and leave its jobs at work."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def _interrupt(processes: Iterable[psutil.Process]) -> None:
    """Tell the processes at work, trainings and evaluations: they save what they have and end."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGINT)


def _go_on() -> None:
    """Raise ``IncompleteError`` when the comparison is interrupted."""
    if STOPPING.is_set():
        raise IncompleteError("interrupted", remedy="the same command goes on where it stopped")


def quiet_environment() -> dict[str, str]:
    """Return the environment of a run that shares the machine with others."""
    from dare_train.eval_check import plain_environment

    return {"OMP_NUM_THREADS": "1", **plain_environment()}


def _trained(arguments: list[str], log: Path) -> float:
    """Run ``dare-train`` and return the CPU seconds it took."""
    _go_on()
    with log.open("a") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "dare_train", *arguments], env=quiet_environment(), stdout=stream, stderr=stream
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise IncompleteError(
            f"training ended with exit code {process.returncode}",
            seen=log.read_text(errors="replace")[-TAIL:],
            remedy=f"read {log}; the same command goes on where it stopped",
        )
    return usage.ru_utime + usage.ru_stime


def _noted_cpu(path: Path, cpu_s: float) -> float:
    return float(read_json(path, "the noted cost")["cpu_s"]) if path.is_file() else cpu_s


def _evaluated(job: Job, model: str, training: str | None) -> str:
    """Evaluate ``model`` unless that was done, and return the folder of the run."""
    from dare_eval.networks import resolve_model_path
    from dare_eval.records.runs import find_run
    from dare_eval.records.store import Store
    from dare_train.follow_up import FollowUp, opencompass_program
    from dare_train.then_eval import run_evaluation

    place = job.folder / "evaluation" / f"{job.row.name.replace('+', '_').replace(' ', '_')}-s{job.seed}"
    folder = Path(model) if training else resolve_model_path(model)
    noted = place.with_name(f"{place.name}.json")
    if noted.is_file():
        return str(find_run(Path(read_json(noted, "the evaluation")["folder"])).folder)
    plan = FollowUp(Path(job.row.evaluation), job.row.model_name, job.row.base, opencompass_program())
    _go_on()
    run = run_evaluation(plan, folder, place, Console(quiet=True))
    store = Store()
    if training:
        store.register_checkpoint(folder)
    store.register_evaluation(run.folder)
    write_json(noted, {"folder": str(run.folder)})
    return str(run.folder)


def _ray_runner(jobs: int) -> Callable[[Job], Done]:
    try:
        import ray
    except ImportError:
        raise SetupError("Ray is not installed", remedy="pip install 'dare[ray]'") from None
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    remote = ray.remote(num_cpus=1)(run_job)
    return lambda job: ray.get(remote.remote(job))
