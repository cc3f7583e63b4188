"""The local sandbox: a few fork servers shared by all threads of a process.

Workers start when first needed. A process that forks keeps its own: the child starts new ones and never touches the
parent's. A worker that stops answering is replaced and its program tried once more.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol

from dare_eval.errors import SetupError
from dare_eval.scoring.code import selftest
from dare_eval.scoring.code.programs import Limits, Program, Verdict
from dare_eval.scoring.code.worker import Worker, WorkerLost

ALLOW_VARIABLE = "DARE_ALLOW_UNSANDBOXED"
_tested: set[bool] = set()
"""Kinds of workers (private or not) that passed the self-test in this process or in one it was forked from."""


class Sandbox(Protocol):
    """Something that runs programs."""

    def run(self, program: Program, limits: Limits) -> Verdict:
        """Run one program under ``limits``."""


class SandboxPool:
    """At most ``workers`` fork servers (default: one per usable core); usable from threads and forked processes."""

    def __init__(self, *, workers: int | None = None, allow_unsandboxed: bool | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.allow_unsandboxed = _allowed_by_environment() if allow_unsandboxed is None else allow_unsandboxed
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._running = 0
        self._private: bool | None = None

    def run(self, program: Program, limits: Limits) -> Verdict:
        """Run one program, waiting for a free worker. Raises ``SetupError`` when the machine allows no sandbox."""
        for _ in range(2):
            worker = self._take()
            try:
                verdict = worker.run(program, limits)
            except WorkerLost:
                self._drop(worker)
            except BaseException:  # an interrupt leaves the conversation half done
                self._drop(worker)
                raise
            else:
                self._give(worker)
                return verdict
        return Verdict(status="failed", reason="the sandbox stopped answering, twice", isolation=worker.isolation)

    def run_all(self, programs: Sequence[Program], limits: Limits) -> list[Verdict]:
        """Run programs on all workers; verdicts come in the order of ``programs``."""
        with ThreadPoolExecutor(self.workers) as threads:
            return list(threads.map(lambda program: self.run(program, limits), programs))

    def _take(self) -> Worker:
        with self._changed:
            while not self._idle and self._running >= self.workers:
                self._changed.wait()
            self._running += 1
            if self._idle:
                return self._idle.pop()
        try:
            worker = self._start()
        except BaseException:
            self._release()
            raise
        self._all.add(worker)
        return worker

    def _give(self, worker: Worker) -> None:
        with self._changed:
            self._idle.append(worker)
        self._release()

    def _drop(self, worker: Worker) -> None:
        self._all.discard(worker)
        worker.close()
        self._release()

    def _release(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify()

    def _start(self) -> Worker:
        if self._private is None:
            worker = start_worker(allow_unsandboxed=self.allow_unsandboxed)
            self._private = worker.private
            return worker
        return Worker(private=self._private)

    def process_ids(self) -> list[int]:
        """Return the process ids of the workers that run."""
        return [worker.pid for worker in self._all]

    def close(self) -> None:
        """End all idle workers; the pool may be used again and then starts new ones."""
        with self._changed:
            idle, self._idle = self._idle, []
        for worker in idle:
            self._all.discard(worker)
            worker.close()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def after_fork(self) -> None:
        """Forget the parent's workers; called in a forked child."""
        for worker in self._all:
            worker.forget()
        self._reset()


def start_worker(*, allow_unsandboxed: bool) -> Worker:
    """Start a tested worker, isolated if the machine allows it.

    Raises ``SetupError`` when it does not and ``allow_unsandboxed`` is not set; warns loudly when it is.
    """
    try:
        return _tested_worker(private=True)
    except SetupError as error:
        if not allow_unsandboxed:
            raise SetupError(
                "programs of a model would run without isolation on this machine",
                seen=f"{error.what}: {error.seen}",
                allowed="user, PID, mount, network and IPC namespaces (Linux 5.12 or newer, util-linux)",
                remedy=f"run in a container that allows them, name a sandbox server in DARE_SANDBOX_URL, or accept the "
                f"risk with allow_unsandboxed=True or {ALLOW_VARIABLE}=1",
            ) from error
        warnings.warn(
            "UNSANDBOXED: programs written by a model run as this user, with network and files within reach "
            f"({error.what}: {error.seen}). Verdicts of hostile programs cannot be trusted.",
            RuntimeWarning,
            stacklevel=2,
        )
        return _tested_worker(private=False)


def _tested_worker(*, private: bool) -> Worker:
    worker = Worker(private=private)
    if private not in _tested:
        try:
            selftest.check(worker.run)
        except BaseException:
            worker.close()
            raise
        _tested.add(private)
    return worker


def _allowed_by_environment() -> bool:
    return os.environ.get(ALLOW_VARIABLE, "").lower() in ("1", "true", "yes")


_pools: weakref.WeakSet[SandboxPool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.after_fork()


def _at_exit() -> None:
    for pool in list(_pools):
        pool.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
