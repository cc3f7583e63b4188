"""Judges answers in processes of their own while the next rollout is decoded, behind a hard limit per answer.

An answer that exceeds the limit costs its worker: the process is killed, the sample is unscored, the rest of its
list goes to a new one. Each distinct failure is told once, with the number of samples it has cost so far in the
metrics. Judges that need this process (a reward model on its GPU) and ``workers = 0`` are called here instead.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from typing import Any

from dare_eval.errors import SetupError
from dare_train.rl.rewards import Answer, Judge, JudgePlan, Outcome, factory_of

LOG = logging.getLogger("dare_train.rewards")
START_LIMIT_S = 120.0
CHUNK = 16
"""Samples handed to a worker at a time."""
MOST_TOLD = 20
"""Different failures that are told; a judge whose messages never repeat would fill the screen."""


class Pending:
    """Outcomes that are being made."""

    def __init__(self, count: int) -> None:
        self._outcomes: list[Outcome | None] = [None] * count
        self._left, self._done = count, threading.Event()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        if not count:
            self._done.set()

    def put(self, place: int, outcome: Outcome) -> None:
        """Store the outcome of sample ``place``."""
        with self._lock:
            self._outcomes[place] = outcome
            self._left -= 1
            if not self._left:
                self._done.set()

    def fail(self, error: BaseException) -> None:
        """Let :meth:`result` raise ``error``: no sample can be judged at all."""
        self._failure = error
        self._done.set()

    def result(self) -> list[Outcome]:
        """Wait for all outcomes."""
        self._done.wait()
        if self._failure is not None:
            raise self._failure
        return [outcome for outcome in self._outcomes if outcome is not None]


class RewardPool:
    """Judges samples by one plan."""

    def __init__(self, plan: JudgePlan, *, workers: int = 1, limit_s: float = 20.0) -> None:
        plan.check()
        self.plan, self.limit_s, self.workers = plan, limit_s, workers
        self.here = workers == 0 or bool(getattr(factory_of(plan.kind), "in_process", False))
        self._judge: Judge | None = None
        self._jobs: queue.SimpleQueue[tuple[Pending, int, list[Answer]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def submit(self, samples: Sequence[Answer]) -> Pending:
        """Begin to judge ``samples``; the outcomes come in their order."""
        pending = Pending(len(samples))
        if self.here:
            for place, outcome in enumerate(self._judge_here(samples)):
                pending.put(place, self._noted(outcome))
            return pending
        self._start()
        for start in range(0, len(samples), CHUNK):
            self._jobs.put((pending, start, list(samples[start : start + CHUNK])))
        return pending

    def close(self) -> None:
        """End the workers."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _judge_here(self, samples: Sequence[Answer]) -> list[Outcome]:
        if self._judge is None:
            self._judge = self.plan.judge()
        many = getattr(self._judge, "many", None)
        if many is None:
            return [self.plan.outcome(self._judge, sample) for sample in samples]
        try:
            values = list(many(samples))
            if len(values) != len(samples):
                raise ValueError(f"{len(values)} scores for {len(samples)} samples")
            ready = dict(zip(map(id, samples), values, strict=True))
        except Exception as error:  # one bad answer must not cost the batch: judge them one by one
            self._tell(f"the reward failed on a batch, its samples are judged singly: {type(error).__name__}: {error}")
            return [self.plan.outcome(self._judge, sample) for sample in samples]
        return [self.plan.outcome(lambda sample: ready[id(sample)], sample) for sample in samples]

    def _start(self) -> None:
        while len(self._threads) < self.workers:
            thread = threading.Thread(target=self._serve, daemon=True, name=f"reward-{len(self._threads)}")
            thread.start()
            self._threads.append(thread)

    def _serve(self) -> None:
        worker: _Worker | None = None
        while (job := self._jobs.get()) is not None:
            pending, start, samples = job
            try:
                worker = self._work(worker, pending, start, samples)
            except Exception as error:  # told to the thread that waits for the outcomes
                worker = None
                pending.fail(error)
        if worker is not None:
            worker.close()

    def _work(self, worker: _Worker | None, pending: Pending, start: int, samples: list[Answer]) -> _Worker | None:
        done = 0
        while done < len(samples):
            if worker is None or not worker.alive():
                worker = _Worker(self.plan)
            worker.send(samples[done:])
            while done < len(samples):
                outcome = worker.take(self.limit_s)
                if outcome is None:
                    seen = f"no verdict within {self.limit_s:g} s" if worker.alive() else "the scoring process died"
                    outcome = Outcome(reward=None, error=seen)
                    worker.close()
                    worker = None
                pending.put(start + done, self._noted(outcome))
                done += 1
                if worker is None:
                    break
        return worker

    def _noted(self, outcome: Outcome) -> Outcome:
        if outcome.error:
            self._tell(f"a sample is unscored: {outcome.error} (told once; counted as 'unscored' in metrics.jsonl)")
        return outcome

    def _tell(self, text: str) -> None:
        """Log ``text`` once, and only so many different texts."""
        with self._lock:
            new = text not in self._told and len(self._told) <= MOST_TOLD
            if new:
                self._told.add(text)
        if new and len(self._told) <= MOST_TOLD:
            LOG.warning("%s", text)
        elif new:
            LOG.warning("samples fail in more ways than are told: further ones are only counted")


class _Worker:
    """One scoring process and the connection to it."""

    def __init__(self, plan: JudgePlan) -> None:
        self.link, theirs = Pipe()
        command = [sys.executable, "-m", "dare_train.rl.reward_worker", str(theirs.fileno())]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        # A session of its own: Ctrl-C is for the run, which finishes its step and would miss verdicts otherwise.
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.send(plan)
        answer = self.take(START_LIMIT_S, missing=SetupError("the scoring process did not start"))
        if isinstance(answer, BaseException):
            self.close()
            raise answer

    def send(self, message: Any) -> None:
        """Send one message; a dead worker is noticed by :meth:`take`."""
        try:
            self.link.send(message)
        except OSError:
            return

    def take(self, limit_s: float, *, missing: Any = None) -> Any:
        """Return the next answer, or ``missing`` when none comes in time."""
        try:
            return self.link.recv() if self.link.poll(limit_s) else missing
        except (EOFError, OSError):
            self.process.wait()
            return missing

    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """End the process and what it started in its session."""
        self.link.close()
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
