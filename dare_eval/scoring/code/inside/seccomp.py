"""A system-call filter for the program's process: what no benchmark program needs and an attack may want.

Memory that no limit counts (memory files, System V segments), tracing, kernel interfaces with a history of holes, new
namespaces and mounts, sockets outside the IP and local families (a virtual machine's host socket is in no network
namespace). Refused calls fail with EPERM. A list of refusals, not of permissions: it backs the namespaces up and does
not replace them. On an architecture without a table here no filter is set.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import NamedTuple

from .linux import checked, libc


class _Machine(NamedTuple):
    """Numbers of one architecture."""

    audit: int
    seccomp: int
    socket: int
    clone: int
    refused: tuple[int, ...]


# Refused, in this order: memfd_create memfd_secret shmget msgget semget mq_open add_key request_key keyctl ptrace
# process_vm_readv process_vm_writev bpf perf_event_open userfaultfd io_uring_setup unshare setns mount umount2
# pivot_root open_tree move_mount fsopen kexec_load init_module finit_module open_by_handle_at chroot
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 317, 41, 56,
        (319, 447, 29, 68, 64, 240, 248, 249, 250, 101, 310, 311, 321, 298, 323, 425, 272, 308, 165, 166, 155, 428, 429,
         430, 246, 175, 313, 304, 161),
    ),
    "aarch64": _Machine(
        0xC00000B7, 277, 198, 220,
        (279, 447, 194, 186, 190, 180, 217, 218, 219, 117, 270, 271, 280, 241, 282, 425, 97, 268, 40, 39, 41, 428, 429,
         430, 104, 105, 273, 265, 51),
    ),
}  # fmt: skip

_CLONE3 = 435  # one number everywhere; its flags lie in memory, where a filter cannot look
_FAMILIES = (1, 2, 10)  # local, IPv4, IPv6
_NAMESPACE_FLAGS = 0x7E020000
_X32_BIT = 0x40000000

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE, _UNKNOWN_CALL, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_NUMBER_AT, _AUDIT_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_SET_FILTER, _SPEC_ALLOW = 1, 4  # the latter: keep speculation as it is, a filter would else slow the program down


class Filter:
    """The filter of this machine; made once by the zygote, since building it in every process would cost 0.5 ms."""

    def __init__(self) -> None:
        self._machine = _MACHINES.get(os.uname().machine)
        program = b"".join(_instructions(self._machine)) if self._machine else b""
        self._code = ctypes.create_string_buffer(program)
        self._header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._code))

    def restrict(self) -> bool:
        """Set the filter for this process and its children; needs no-new-privileges. Returns whether there is one."""
        if self._machine is None:
            return False
        checked(libc.syscall(self._machine.seccomp, _SET_FILTER, _SPEC_ALLOW, self._header), "seccomp")
        return True


def _instructions(machine: _Machine) -> list[bytes]:
    """Return the filter; every test is followed by its own verdict, so that no jump is longer than one step."""
    steps = [
        _step(_LOAD, _AUDIT_AT),
        *_unless(_EQUAL, machine.audit, _KILL),
        _step(_LOAD, _NUMBER_AT),
        *_when(_AT_LEAST, _X32_BIT, _KILL),
        *_when(_EQUAL, _CLONE3, _UNKNOWN_CALL),
    ]
    for number in machine.refused:
        steps += _when(_EQUAL, number, _REFUSE)
    steps += _argument_of(machine.clone, _when(_ANY_BIT, _NAMESPACE_FLAGS, _REFUSE))
    families = [step for family in _FAMILIES for step in _when(_EQUAL, family, _ALLOW)]
    steps += _argument_of(machine.socket, [*families, _step(_RETURN, _REFUSE)])
    return [*steps, _step(_RETURN, _ALLOW)]


def _argument_of(call: int, tests: list[bytes]) -> list[bytes]:
    """Return steps that try ``tests`` on the first argument of ``call`` and skip them for other calls."""
    body = [_step(_LOAD, _FIRST_ARGUMENT_AT), *tests, _step(_LOAD, _NUMBER_AT)]
    return [_step(_EQUAL, call, 0, len(body)), *body]


def _when(test: int, value: int, verdict: int) -> list[bytes]:
    return [_step(test, value, 0, 1), _step(_RETURN, verdict)]


def _unless(test: int, value: int, verdict: int) -> list[bytes]:
    return [_step(test, value, 1, 0), _step(_RETURN, verdict)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


FILTER = Filter()
