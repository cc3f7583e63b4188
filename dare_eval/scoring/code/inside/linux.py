"""The Linux calls that Python 3.11 does not offer: namespaces, mounts, capabilities, parent-death signals.

Every function raises ``OSError`` that names the call.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct

NEW_MOUNT, NEW_IPC, NEW_PID = 0x00020000, 0x08000000, 0x20000000
NO_SUID, NO_DEV, READ_ONLY = 0x2, 0x4, 0x1
BIND, RECURSIVE = 0x1000, 0x4000

_DETACH = 2
_AT_RECURSIVE, _AT_FDCWD = 0x8000, -100
_SYS_MOUNT_SETATTR = 442  # one number on every architecture (Linux 5.12)
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91, "riscv64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, call: str) -> int:
    """Return the result of a C call; raises its ``OSError`` for -1."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")
    return result


def _number(table: dict[str, int], call: str) -> int:
    machine = os.uname().machine
    if machine not in table:
        raise OSError(38, f"{call}: no call number known for {machine}")
    return table[machine]


def unshare(flags: int) -> None:
    """Give the process (and its next child, for PIDs) new namespaces."""
    checked(libc.unshare(flags), "unshare")


def enter_namespace(descriptor: int, kind: int) -> None:
    """Let the process (for PIDs: its next children) live in the namespace behind ``descriptor``."""
    checked(libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount ``source`` on ``target``."""
    done = libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    checked(done, f"mount {source} on {target}")


def unmount(target: str) -> None:
    """Detach the mount at ``target`` and everything below it."""
    checked(libc.umount2(target.encode(), _DETACH), f"umount {target}")


def set_mount_flags(target: str, flags: int, *, recursive: bool) -> None:
    """Add ``READ_ONLY``, ``NO_SUID`` or ``NO_DEV`` to the mount at ``target``; flags it has stay."""
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    where = _AT_RECURSIVE if recursive else 0
    done = libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, target.encode(), where, attributes, len(attributes))
    checked(done, f"mount_setattr {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    """Make ``new_root`` the root of this mount namespace."""
    number = _number(_SYS_PIVOT_ROOT, "pivot_root")
    checked(libc.syscall(number, new_root.encode(), put_old.encode()), "pivot_root")


def become_subreaper() -> None:
    """Adopt orphaned descendants, so that a daemonised program stays within reach."""
    checked(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(CHILD_SUBREAPER)")


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent ends."""
    checked(libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl(PDEATHSIG)")


def hide_memory() -> None:
    """Forbid other processes of the same user to trace this one or read its memory."""
    checked(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(DUMPABLE)")


def forbid_new_privileges() -> None:
    """Make set-uid programs powerless for this process and its children."""
    checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(NO_NEW_PRIVS)")


def bound_capabilities() -> None:
    """Let no later exec, of this process or its children, gain a capability; the ones held now stay."""
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break  # past the last capability this kernel knows, or not allowed to shrink the set


def drop_capabilities() -> None:
    """Give up every capability this process holds."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    checked(libc.syscall(_number(_SYS_CAPSET, "capset"), header, bytes(24)), "capset")


def set_limit(which: int, value: int) -> None:
    """Set soft and hard limit, never above the hard limit in force."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
