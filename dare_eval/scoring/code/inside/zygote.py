"""The fork server: an interpreter with the usual modules loaded that forks one judge per program.

It moves into the private root, then serves one job at a time: fork, watch (time, processes, memory), kill what is
left, reap, report. It never reads a program or a test; both pass it by, in the descriptor it hands to the judge.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from . import frames, isolate, linux, rootfs, watch
from .box import Boxes
from .clock import Clock
from .judge import Setting, judge

CONTROL = 3
"""Descriptor of the socket to the host."""

WARM = (
    "abc", "array", "bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal", "enum",
    "fractions", "functools", "hashlib", "heapq", "io", "itertools", "math", "operator", "queue", "random", "re",
    "statistics", "string", "threading", "time", "traceback", "typing",
)  # fmt: skip
"""Loaded before the first fork: importing them in every program would cost more than running it."""

_POLL_S = 0.01


class Report(NamedTuple):
    """What the zygote tells the host when a job is over and nothing of it is left."""

    ended: str
    """``done``, ``timeout``, ``processes``, ``memory`` or ``cancelled``."""
    wall_s: float
    waited_s: float
    """Seconds of ``wall_s`` spent waiting for a CPU; 0 for a job that ended in time, where nobody asked."""
    processes: int
    memory_mib: int


class _Server(NamedTuple):
    """What stays the same from job to job."""

    control: socket.socket
    family: watch.Family
    boxes: Boxes
    private: bool
    helpers: tuple[str, ...]


def main(settings: str) -> None:
    """Serve the socket at ``CONTROL`` until the host closes it."""
    given = json.loads(settings)
    sys.path.pop(0)
    control = socket.socket(fileno=CONTROL)
    control.set_inheritable(False)
    try:
        family = _settle(given)
    except OSError as error:
        control.send(json.dumps({"failed": str(error)}).encode())
        return
    # Once: looking through the module table touches, and after a fork copies, every page that holds a name of it.
    server = _Server(control, family, Boxes(), given["private"], isolate.helpers())
    control.send(json.dumps({"ready": True}).encode())
    while (request := _request(control)) is not None:
        report = _serve(*request, server)
        control.send(json.dumps(report._asdict()).encode())


def _settle(given: dict[str, Any]) -> watch.Family:
    for name in WARM:
        importlib.import_module(name)
    if given["cgroup"]:
        with contextlib.suppress(OSError):  # another host just removed the empty group
            (Path(given["cgroup"]) / "cgroup.procs").write_text("0")
    linux.bound_capabilities()
    if not given["private"]:
        linux.become_subreaper()
        return watch.Descendants()
    rootfs.enter(given["staging"], given["packages"])
    return watch.NamespaceFamily()


def _request(control: socket.socket) -> tuple[dict[str, Any], socket.socket] | None:
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
        if not text:
            return None
        if descriptors:
            return json.loads(text), socket.socket(fileno=descriptors[0])


def _serve(job: dict[str, Any], host: socket.socket, server: _Server) -> Report:
    for name in job["preload"]:
        with contextlib.suppress(ImportError):  # the program meets the same error, and that is its verdict
            importlib.import_module(name)
    gc.freeze()
    try:
        box, namespace = _box(job["limits"], server)
    except OSError as error:
        frames.send(host, {"status": "setup", "reason": str(error)})
        host.close()
        return Report("done", 0.0, 0.0, 0, 0)
    clock = Clock(job["limits"], server.family.starved_s)
    pid = os.fork()
    if pid == 0:
        server.control.close()
        _judge_and_exit(host, Setting(job["limits"], box, namespace, server.private, server.helpers))
    host.close()
    report = _watch(pid, job["limits"], clock, server)
    server.family.kill()
    if not server.private:
        _remove(box)
    return report


def _box(limits: dict[str, Any], server: _Server) -> tuple[str, int]:
    """Return an empty folder and the descriptor of the mount namespace it lies in (-1: that of this process)."""
    if server.private:
        return rootfs.BOX, server.boxes.empty(limits["box_mib"])
    return tempfile.mkdtemp(prefix="dare-box-"), -1


def _judge_and_exit(host: socket.socket, setting: Setting) -> None:
    try:
        judge(host, setting)
    except BaseException as error:  # the host counts it as a failure with this reason
        frames.send(host, {"status": "failed", "reason": f"the judge broke: {type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _watch(pid: int, limits: dict[str, Any], clock: Clock, server: _Server) -> Report:
    """Wait for the judge's end, or for a limit to be passed; the judge itself counts as one process."""
    finished = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(finished, select.POLLIN)
    poll.register(server.control, select.POLLIN)
    most, highest, ended = 0, 0, ""
    while not ended:
        ready = poll.poll(1e3 * min(_POLL_S, clock.left_s()))
        if ready:
            ended = "done" if ready[0][0] == finished else "cancelled"
        else:
            count, memory_mib = server.family.usage()
            most, highest = max(most, count - 1), max(highest, memory_mib)
            ended = _passed_limit(limits, clock, most, highest)
    os.close(finished)
    return Report(ended, clock.wall_s(), clock.waited_s, most, highest)


def _passed_limit(limits: dict[str, Any], clock: Clock, processes: int, memory_mib: int) -> str:
    if processes > limits["processes"]:
        return "processes"
    if memory_mib > limits["total_memory_mib"]:
        return "memory"
    return "" if clock.left_s() else "timeout"


def _remove(box: str) -> None:
    """Remove a program's folder, also one whose permissions it took away."""
    for folder, names, _ in os.walk(box):
        for name in names:
            path = Path(folder) / name
            if not path.is_symlink():
                path.chmod(0o700)
    Path(box).chmod(0o700)
    shutil.rmtree(box, ignore_errors=True)
