"""One fork server and the conversation with it.

A worker serves one program at a time. It is made by ``posix_spawn``, so starting one neither copies the host process
nor inherits its descriptors, and belongs to the process that made it: a forked child only closes its copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dare_eval.errors import SetupError
from dare_eval.scoring.code import cgroups
from dare_eval.scoring.code.inside import frames, zygote
from dare_eval.scoring.code.programs import Limits, Program, Verdict

PACKAGES = ("numpy", "scipy", "pandas", "sympy", "mpmath", "dateutil", "pytz", "tzdata", "six")
"""Site packages that a program may import, where installed; the others do not exist in its root folder."""

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from inside.zygote import main; main(sys.argv[2])"
_UNSHARE = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts")
_PASSED_ON = ("LD_LIBRARY_PATH", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "TZ")
_PRELOAD = ("numpy",)
_START_S, _GRACE_S = 60.0, 15.0
_GROUP_PROCESSES = 4096


class WorkerLost(Exception):
    """The fork server did not answer; the program's verdict is unknown."""


class Worker:
    """A running fork server."""

    def __init__(self, *, private: bool) -> None:
        """Start it; raises ``SetupError`` with the reason when it cannot isolate programs as asked."""
        self.private, self.isolation = private, "namespaces" if private else "none"
        self.cgroup = cgroups.create(_GROUP_PROCESSES) if private else None
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = 0
        with tempfile.TemporaryDirectory(prefix="dare-root-") as staging, tempfile.TemporaryFile() as errors:
            try:
                self.pid = self._spawn(theirs, staging, errors.fileno())
                theirs.close()
                answer = self._hear(_START_S)
            except (OSError, WorkerLost) as error:
                errors.seek(0)
                said = errors.read(2000).decode("utf-8", "replace").strip()
                self.close()
                raise SetupError("the sandbox did not start", seen=said.rpartition("\n")[2] or str(error)) from error
        if "failed" in answer:
            self.close()
            raise SetupError("the sandbox could not isolate itself", seen=answer["failed"])

    def _spawn(self, control: socket.socket, staging: str, errors: int) -> int:
        package = Path(__file__).parent
        group = str(self.cgroup) if self.cgroup else ""
        settings = {"private": self.private, "staging": staging, "packages": PACKAGES, "cgroup": group}
        # -I would also ignore PYTHONHASHSEED, and the order of a printed set must not change from run to run. The
        # environment is made from nothing, so -P and -s give the rest of what -I stands for.
        command = [sys.executable, "-P", "-s", "-B", "-c", _BOOT, str(package), json.dumps(settings)]
        if self.private:
            command = [shutil.which(_UNSHARE[0]) or _UNSHARE[0], *_UNSHARE[1:], *command]
        null = os.open(os.devnull, os.O_RDWR)
        try:
            return os.posix_spawn(command[0], command, _environment(), setsid=True, setsigmask=(), file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, errors, 2),
                (os.POSIX_SPAWN_DUP2, control.fileno(), zygote.CONTROL),
            ])  # fmt: skip
        finally:
            os.close(null)

    def run(self, program: Program, limits: Limits) -> Verdict:
        """Run one program; raises ``WorkerLost`` when the server must be replaced."""
        ours, theirs = socket.socketpair()
        with ours:
            job = {"limits": limits.to_dict(), "preload": _preload(program)}
            try:
                socket.send_fds(self.control, [json.dumps(job).encode()], [theirs.fileno()])
            except OSError as error:
                raise WorkerLost(str(error)) from error
            finally:
                theirs.close()
            ours.settimeout(limits.longest_s + _GRACE_S)
            _tell(ours, program)
            spoken = _spoken(ours)  # first: a judge with much to say ends only when it is heard
            return _verdict(self._hear(_GRACE_S), spoken, self.isolation)

    def _hear(self, seconds: float) -> dict[str, Any]:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        if not poll.poll(1e3 * seconds):
            raise WorkerLost(f"no answer in {seconds:g} s")
        try:
            text = self.control.recv(65536)
        except OSError as error:
            raise WorkerLost(str(error)) from error
        if not text:
            raise WorkerLost("it ended")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def close(self) -> None:
        """End the server and everything in it."""
        self.control.close()
        if self.pid:
            _end(self.pid)
            self.pid = 0
        if self.cgroup is not None:
            cgroups.remove(self.cgroup)

    def forget(self) -> None:
        """Let go of a server that belongs to the process this one was forked from."""
        self.control.close()
        self.pid, self.cgroup = 0, None


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    return {**kept, **threads, **path}


def _preload(program: Program) -> list[str]:
    """Return the heavy packages the program or its tests name; the fork server loads them once for all."""
    texts = (program.code, *program.tests, *program.setup)
    return [name for name in _PRELOAD if any(re.search(rf"\b{name}\b", text) for text in texts)]


def _tell(job: socket.socket, program: Program) -> None:
    """Hand over code, then tests; a judge that ended before it had read them is heard of in what follows."""
    tests = {"tests": program.tests, "setup": program.setup, "entry_points": program.entry_points}
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
        frames.send(job, {"code": program.code, "stdin": program.stdin})
        frames.send(job, {**tests, "script": program.stdin is not None})


def _spoken(job: socket.socket) -> dict[str, Any] | None:
    """Return the judge's verdict, or None when it ended without one."""
    try:
        spoken: dict[str, Any] = frames.receive(job)
    except frames.Closed:
        return None
    return spoken


def _verdict(report: dict[str, Any], spoken: dict[str, Any] | None, isolation: str) -> Verdict:
    facts = {name: report[name] for name in ("wall_s", "waited_s", "processes", "memory_mib")}
    if spoken is None:
        status, reason = _ENDED[report["ended"]]
        return Verdict(status=status, reason=reason, isolation=isolation, **facts)
    spoken.pop("uses", None)
    if spoken["status"] == "setup":
        raise SetupError("the sandbox could not isolate a program", seen=spoken["reason"])
    return Verdict(isolation=isolation, **facts, **spoken)


_ENDED = {
    "timeout": ("timeout", "wall seconds used up"),
    "processes": ("failed", "more processes than allowed"),
    "memory": ("memory", "more memory than allowed, all processes together"),
    "cancelled": ("failed", "cancelled"),
    "done": ("failed", "the judge ended without a verdict"),
}


def _end(pid: int) -> None:
    """Wait for the server to end by itself (its socket is closed), kill it after a while, and reap it."""
    until = time.monotonic() + 2.0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
