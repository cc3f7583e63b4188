"""A few long-lived worker processes behind a hard wall limit, usable from any thread and after a fork.

A worker imports math-verify once (a second or two) and then answers in milliseconds. An item that exceeds its limit
costs its worker: the process is killed, and the next item gets a new one. Nothing here uses signals, so training
threads and Ray actors can score; workers end when their input closes, also when the parent dies.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from dare_eval.errors import SetupError

ITEM_LIMIT_S = 6.0
"""Wall seconds for one comparison; with the start of a new worker an item stays under 10 s on a quiet machine."""
GOLD_LIMIT_S = 2.0
"""Wall seconds for reading a gold, which comes before its first comparison."""
START_LIMIT_S = 120.0


class Verdict(NamedTuple):
    """What a worker said: equal or not, and in words how it came to that (``timeout`` and ``died`` included)."""

    equal: bool
    why: str


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        # -P: neither the working folder nor this package may shadow a module that sympy imports.
        command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.buffer = b""
        self.ended = False
        if self.read(START_LIMIT_S) is None:
            self.kill()
            raise SetupError(
                "the worker for mathematical answers did not start",
                seen=f"exit status {self.process.returncode}",
                remedy="dare-eval check (math-verify, latex2sympy2_extended and antlr4 runtime must match)",
            )

    def ask(self, request: dict[str, Any], limit_s: float) -> dict[str, Any] | None:
        """Send a request and return its answer, or None when the limit passed or the process died."""
        line = json.dumps(request) + "\n"
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except OSError:
            self.ended = True
            return None
        return self.read(limit_s)

    def read(self, limit_s: float) -> dict[str, Any] | None:
        """Return the next message, or None when none came in time."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN | select.POLLHUP)
        end = time.monotonic() + limit_s
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not waiting.poll(1000 * left):
                return None
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                self.ended = True
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Pool:
    """Up to ``size`` workers, started when first needed; a thread that finds all busy waits for one."""

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._reset()
        atexit.register(self.shutdown)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Leave the parent's workers alone: a child that wrote into their pipes would mix up the answers."""
        for worker in self.idle:
            worker.close()
        self._reset()

    def _reset(self) -> None:
        self.idle: list[_Worker] = []
        self.slots = threading.BoundedSemaphore(self.size)
        self.lock = threading.Lock()

    def equal(
        self, gold: str, pred: str, *, kind: str = "scalar", rounded: bool = False, limit_s: float = ITEM_LIMIT_S
    ) -> Verdict:
        """Compare two spelt answers within ``limit_s`` wall seconds."""
        return self._asked({"gold": gold, "pred": pred, "kind": kind, "rounded": rounded}, limit_s)

    def parses(self, gold: str, *, limit_s: float = GOLD_LIMIT_S) -> Verdict:
        """Tell within ``limit_s`` wall seconds whether math-verify can read a spelt gold."""
        return self._asked({"gold": gold, "pred": "", "kind": "gold", "rounded": False}, limit_s)

    def _asked(self, request: dict[str, Any], limit_s: float) -> Verdict:
        with self.slots:
            worker = self._borrow()
            answer = worker.ask(request, limit_s)
            if answer is None:
                why = "died" if worker.ended else "timeout"
                worker.kill()
                return Verdict(False, why)
            with self.lock:
                self.idle.append(worker)
            return Verdict(answer["equal"], answer["why"])

    def _borrow(self) -> _Worker:
        with self.lock:
            while self.idle:
                worker = self.idle.pop()
                if worker.alive():
                    return worker
                worker.kill()
        return _Worker()

    def shutdown(self) -> None:
        """End every idle worker of this process."""
        with self.lock:
            for worker in self.idle:
                worker.kill()
            self.idle.clear()


POOL = Pool(size=max(1, min(4, (os.cpu_count() or 2) // 2)))
"""The pool of this process."""
