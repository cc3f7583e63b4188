"""Counting, killing and reaping what a program started. Process limits do not bind root, so the zygote counts.

Inside namespaces the zygote is process 1 of its own PID namespace: one signal reaches everything, also a daemonised
grandchild, and nothing else of the machine. Without namespaces the descendants are looked up in /proc.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

_UNBACKED = re.compile(rb"Rss(?:Anon|Shmem):\s+(\d+)")
_GIVE_UP_S = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_THREADS = 64


class Family(ABC):
    """The processes below the zygote."""

    @abstractmethod
    def members(self) -> Iterator[str]:
        """Yield the names below /proc of all processes of the job."""

    @abstractmethod
    def kill(self) -> None:
        """End all of them and reap them."""

    def usage(self) -> tuple[int, int]:
        """Return how many processes there are and the memory they hold, in MiB."""
        sizes = [_memory_kib(name) for name in self.members()]
        return len(sizes), sum(sizes) >> 10

    def starved_s(self, wall_s: float) -> float:
        """Return how much of ``wall_s`` the job spent waiting for a CPU.

        The waiting of the judge and of the program's first process counts, since of these one at a time has work to
        do. That of processes the program started does not, and never more than what is left of the time beside the CPU
        seconds of them all: a program that crowds out itself gains nothing.
        """
        parents = {name: _parent(name) for name in self.members()}
        first = {name for name, parent in parents.items() if parent not in parents}
        waited_s = sum(_waited_s(name) for name, parent in parents.items() if name in first or parent in first)
        return max(0.0, min(waited_s, wall_s - sum(map(_cpu_s, parents))))


class NamespaceFamily(Family):
    """Everything in the zygote's user namespace but the zygote itself."""

    def __init__(self) -> None:
        self.own = str(Path("/proc/self/ns/user").readlink())
        self.me = str(Path("/proc/self").readlink())

    def members(self) -> Iterator[str]:
        """Yield the processes of the namespace."""
        for name in _processes():
            if name != self.me and _namespace(name) == self.own:
                yield name

    def kill(self) -> None:
        """Signal the whole PID namespace; returns when the last process is gone."""
        with contextlib.suppress(ProcessLookupError):  # nobody left
            os.kill(-1, signal.SIGKILL)
        _reap(block=True)


class Descendants(Family):
    """All processes that descend from the zygote, which adopts orphans."""

    def members(self) -> Iterator[str]:
        """Yield the descendants, found through the parent of every process."""
        children: dict[str, list[str]] = {}
        for name in _processes():
            children.setdefault(_parent(name), []).append(name)
        waiting = children.get(str(os.getpid()), [])
        while waiting:
            name = waiting.pop()
            waiting += children.get(name, [])
            yield name

    def kill(self) -> None:
        """Stop the descendants until no new one appears, then kill them."""
        until = time.monotonic() + _GIVE_UP_S
        stopped: set[str] = set()
        while time.monotonic() < until and (new := set(self.members()) - stopped):
            _signal(new, signal.SIGSTOP)
            stopped |= new
        while time.monotonic() < until and (left := set(self.members())):
            _signal(left, signal.SIGKILL)
            _reap(block=False)
            time.sleep(0.001)


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only, every few ms


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/ns/user")  # noqa: PTH115 - every few ms
    except OSError:
        return ""


def _stat(name: str) -> list[str]:
    """Return the fields of a process's ``stat`` from its state on; none when it is gone."""
    try:
        return Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return []


def _parent(name: str) -> str:
    fields = _stat(name)
    return fields[1] if len(fields) > 1 else ""


def _cpu_s(name: str) -> float:
    """Return the CPU seconds of a process and of the children it has reaped."""
    return sum(map(int, _stat(name)[11:15])) / _TICKS


def _waited_s(name: str) -> float:
    """Return how long the threads of a process were ready to run and had no CPU; 0 where the kernel does not say."""
    delays_ns = 0
    with contextlib.suppress(OSError, IndexError):
        for thread in os.listdir(f"/proc/{name}/task")[:_MOST_THREADS]:  # noqa: PTH208 - names only
            delays_ns += int(Path(f"/proc/{name}/task/{thread}/schedstat").read_text().split()[1])
    return delays_ns / 1e9


def _memory_kib(name: str) -> int:
    """Return the memory of a process that no file backs, memory shared between processes included."""
    try:
        descriptor = os.open(f"/proc/{name}/status", os.O_RDONLY)
    except OSError:
        return 0
    try:
        text = os.read(descriptor, 8192)
    except OSError:  # it ended meanwhile
        return 0
    finally:
        os.close(descriptor)
    return sum(int(size) for size in _UNBACKED.findall(text))


def _signal(names: set[str], number: int) -> None:
    for name in names:
        try:
            os.kill(int(name), number)
        except ProcessLookupError:
            continue


def _reap(*, block: bool) -> None:
    try:
        while os.waitpid(-1, 0 if block else os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return
