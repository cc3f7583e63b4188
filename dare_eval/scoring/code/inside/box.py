"""The folder that a program works in: an empty memory file system, in a mount namespace that has no ``/proc``.

Ending a mount namespace makes the kernel wait for every CPU, tens of milliseconds on a busy machine. So the fork server
makes one and each program's process enters it. Only an untouched folder serves the next program: what a program leaves
in it, or does to the folder itself, costs the namespace, and the next program gets a new one.
"""

from __future__ import annotations

import os
import stat

from . import linux
from .rootfs import BOX

INODES = 4096
_MODE = 0o700


class Boxes:
    """Gives out the namespace of an empty box; the mount belongs to this process, which must own its namespace."""

    def __init__(self) -> None:
        self._size_mib, self._namespace = 0, -1

    def empty(self, size_mib: int) -> int:
        """Return the descriptor of a namespace whose box is empty and holds ``size_mib``; raises ``OSError``."""
        if self._namespace < 0 or self._size_mib != size_mib or not _untouched():
            self._end()
            flags = linux.NO_SUID | linux.NO_DEV
            linux.mount("tmpfs", BOX, "tmpfs", flags, f"size={size_mib}m,nr_inodes={INODES},mode={_MODE:o}")
            self._size_mib, self._namespace = size_mib, _without_processes()
        return self._namespace

    def _end(self) -> None:
        if self._namespace >= 0:
            os.close(self._namespace)
            linux.unmount(BOX)
            self._namespace = -1


def _untouched() -> bool:
    """Tell whether the box is as it was made."""
    try:
        about = os.stat(BOX)  # noqa: PTH116 - for every program
        owned = (about.st_uid, about.st_gid) == (os.getuid(), os.getgid())
        return owned and stat.S_IMODE(about.st_mode) == _MODE and not os.listdir(BOX) and not os.listxattr(BOX)  # noqa: PTH208
    except OSError:
        return False


def _without_processes() -> int:
    """Return a copy of this mount namespace in which ``/proc`` is empty: not even a program's own memory is in it."""
    home = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    try:
        linux.unshare(linux.NEW_MOUNT)
        try:
            made = os.open("/proc/self/ns/mnt", os.O_RDONLY)
            flags = linux.NO_SUID | linux.NO_DEV | linux.READ_ONLY
            linux.mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,mode=555")
        finally:
            linux.enter_namespace(home, linux.NEW_MOUNT)
    finally:
        os.close(home)
    return made
