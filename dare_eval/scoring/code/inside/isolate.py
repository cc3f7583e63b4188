"""What a program's process gives up before it runs: rights, memory, files, processes, everything but two pipes."""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import Any

from . import linux, seccomp


def into_box(box: str, namespace: int) -> None:
    """Enter the program's own empty folder, and the mount ``namespace`` it lies in (negative: there is none)."""
    if namespace >= 0:
        linux.enter_namespace(namespace, linux.NEW_MOUNT)
    os.chdir(box)
    os.environ.update(HOME=box, TMPDIR=box, PWD=box)


def limit_resources(limits: dict[str, Any], *, private: bool) -> None:
    """Set the process limits; the count of processes binds ordinary users only, the zygote watches it for all."""
    seconds = int(limits["wall_s"]) + 1
    linux.set_limit(resource.RLIMIT_AS, limits["memory_mib"] << 20)
    linux.set_limit(resource.RLIMIT_CPU, 2 * seconds)
    linux.set_limit(resource.RLIMIT_FSIZE, limits["file_mib"] << 20)
    linux.set_limit(resource.RLIMIT_NOFILE, limits["open_files"])
    linux.set_limit(resource.RLIMIT_CORE, 0)
    linux.set_limit(resource.RLIMIT_MEMLOCK, 0)
    linux.set_limit(resource.RLIMIT_MSGQUEUE, 0)
    if private:  # without a user namespace this would count every process of the user
        linux.set_limit(resource.RLIMIT_NPROC, 4 * limits["processes"])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a too large write is an OSError, not a death


def limit_memory(mib: int) -> None:
    """Bound the address space of a helper process."""
    linux.set_limit(resource.RLIMIT_AS, mib << 20)


def drop_privileges() -> None:
    """Give up all capabilities for good (the zygote has seen to it that no exec brings one back) and set the filter."""
    linux.forbid_new_privileges()
    linux.drop_capabilities()
    seccomp.FILTER.restrict()


def keep_only(*descriptors: int) -> None:
    """Close every descriptor but the standard ones and ``descriptors``."""
    low = 3
    for descriptor in sorted(descriptors):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, 65536)


def redirect(source: int, *targets: int) -> None:
    """Let each of ``targets`` mean ``source``."""
    for target in targets:
        os.dup2(source, target, inheritable=True)


def helpers() -> tuple[str, ...]:
    """Return the names of this package's loaded modules."""
    package = __name__.partition(".")[0]
    return tuple(name for name in sys.modules if name.partition(".")[0] == package)


def forget(modules: tuple[str, ...]) -> None:
    """Drop ``modules`` from the module table, so that a program meets only what it imports itself."""
    for name in modules:
        sys.modules.pop(name, None)
