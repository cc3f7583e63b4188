"""The judge: starts the program in a process of its own, then reads the tests, runs them and compares.

The order matters. The program's process is made before the tests are read, so they are never in its memory, on its
disk or behind one of its descriptors; and the verdict is written here, by a process the program cannot see.
"""

from __future__ import annotations

import builtins
import os
import signal
import socket
import sys
import tempfile
from types import CodeType
from typing import Any, NamedTuple

from . import cell, codec, frames, isolate, linux
from .remote import Output, Program, ProgramDied, ProgramExited, SetupFailed, UnsupportedValue
from .traces import short_trace

_HEADROOM_MIB = 512
"""Address space of the judge beyond the program's: it holds the tests and the decoded answers."""


class Setting(NamedTuple):
    """How the zygote wants this program run."""

    limits: dict[str, Any]
    box: str
    namespace: int
    """Descriptor of the mount namespace the box lies in; -1 without isolation."""
    private: bool
    helpers: tuple[str, ...]
    """Names of this package's modules, collected once: looking through the module table would copy its pages."""


class Verdict(NamedTuple):
    """What the judge tells the host."""

    status: str
    reason: str = ""
    trace: str = ""
    tests_passed: int = 0


class TestNames(dict[str, Any]):
    """The tests' globals. A name they do not define is a built-in one, or else looked up in the program."""

    def __init__(self, program: Program, entry_points: list[str]) -> None:
        super().__init__(__name__="__tests__", __builtins__=builtins)
        self.program, self.entry_points = program, frozenset(entry_points)

    def __missing__(self, name: str) -> Any:
        if name not in self.entry_points and hasattr(builtins, name):
            found = getattr(builtins, name)
        else:
            found = self.program.lookup(name)
        self[name] = found
        return found


def judge(host: socket.socket, setting: Setting) -> None:
    """Serve one job of the host and end the process."""
    job = frames.receive(host)
    pid, sock, output = start_program(job, setting, host)
    program = Program(sock, Output(output, setting.limits["output_bytes"]))
    linux.drop_capabilities()
    if not setting.private:
        linux.hide_memory()
    isolate.limit_memory(setting.limits["memory_mib"] + _HEADROOM_MIB)
    isolate.redirect(os.open(os.devnull, os.O_RDWR), 0, 1, 2)
    tests = frames.receive(host)
    verdict = _verdict(program, pid, tests)
    program.output.drain()
    shown = bytes(program.output.kept).decode("utf-8", "replace")
    frames.send(
        host, {**verdict._asdict(), "output": shown, "output_bytes": program.output.total, "uses": program.uses}
    )


def start_program(job: dict[str, Any], setting: Setting, host: socket.socket) -> tuple[int, socket.socket, int]:
    """Fork the program's process; returns its id, the socket to it and the reading end of its output."""
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    home = os.open("/proc/self/ns/pid", os.O_RDONLY)
    if setting.private:
        linux.unshare(linux.NEW_PID | linux.NEW_IPC)
    pid = os.fork()
    if pid == 0:
        try:
            host.close()
            _become_program(job, setting, theirs, writer)
        finally:
            os._exit(98)
    if setting.private:
        linux.enter_namespace(home, linux.NEW_PID)  # else the tests could start no thread
    theirs.close()
    os.close(writer)
    os.close(home)
    return pid, ours, reader


def _become_program(job: dict[str, Any], setting: Setting, sock: socket.socket, writer: int) -> None:
    try:
        os.setsid()
        linux.die_with_parent()
        isolate.into_box(setting.box, setting.namespace)
        isolate.redirect(_input(job.get("stdin")), 0)
        isolate.redirect(writer, 1, 2)
        isolate.keep_only(sock.fileno())
        isolate.limit_resources(setting.limits, private=setting.private)
        isolate.drop_privileges()
        seed_generators()
        isolate.forget(setting.helpers)
    except OSError as error:
        frames.send(sock, ["setup", str(error)])
        return
    cell.run(job["code"], sock, as_script=job.get("stdin") is not None)


def _input(text: str | None) -> int:
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    holder = tempfile.TemporaryFile()  # noqa: SIM115 - lives as descriptor 0
    holder.write(text.encode("utf-8", "surrogatepass"))
    holder.seek(0)
    return os.dup(holder.fileno())


def seed_generators() -> None:
    """Give the global generators a fixed state: a verdict must not change between two runs of one program.

    Only in this forked process, which runs nothing of ours; every fork would else be seeded from the clock.
    """
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed(0)


def _verdict(program: Program, pid: int, tests: dict[str, Any]) -> Verdict:
    done = 0
    try:
        program.loaded()
        if tests.get("script"):
            return Verdict("passed")
        seed_generators()
        names = _names(program, tests)
        for test in _compiled(tests["tests"]):
            exec(test, names)
            done += 1
        if program.dead:  # a bare except of the test caught it
            raise ProgramDied(program.dead)
        return Verdict("passed", tests_passed=done) if program.uses else Verdict("failed", "no test used the program")
    except _BadTest as error:
        return Verdict("bad_test", str(error))
    except _MissingEntryPoint as error:
        return Verdict("missing_entry_point", f"'{error}' is not defined")
    except BaseException as error:  # every way a test can end is a verdict
        verdict = _of_error(error, pid, done)
        ended_well = tests.get("script") and verdict.reason in ("exit status 0", "SystemExit(0)", "SystemExit(None)")
        return Verdict("passed", verdict.reason) if ended_well else verdict


class _BadTest(Exception):
    """A test is not Python; that is no fault of the program."""


class _MissingEntryPoint(Exception):
    """The program does not define what the tests call."""


def _compiled(sources: list[str]) -> list[CodeType]:
    try:
        return [compile(source, f"<test {n}>", "exec", dont_inherit=True) for n, source in enumerate(sources, 1)]
    except (SyntaxError, ValueError) as error:
        raise _BadTest(f"the test is not Python: {error}") from error


def _names(program: Program, tests: dict[str, Any]) -> TestNames:
    """Return the tests' globals: what the prompt defines (never the program's version of it), then the program."""
    entry_points = tests["entry_points"]
    names = TestNames(program, entry_points)
    for source in tests["setup"]:
        exec(compile(source, "<setup>", "exec", dont_inherit=True), names)
    for name in entry_points:
        names.pop(name, None)
        try:
            names[name]
        except KeyError:
            raise _MissingEntryPoint(name) from None
    return names


def _of_error(error: BaseException, pid: int, done: int) -> Verdict:
    if isinstance(error, SetupFailed):
        return Verdict("setup", str(error))
    if isinstance(error, ProgramExited):
        return Verdict("exited", f"SystemExit({error})", tests_passed=done)
    if isinstance(error, ProgramDied):
        return _of_death(str(error), pid, done)
    kind, trace = getattr(error, "program_error", (type(error).__name__, ""))
    trace = trace or short_trace(error, __file__)
    if isinstance(error, AssertionError):
        return Verdict("failed", f"AssertionError: {error}"[:500], trace, done)
    if isinstance(error, MemoryError):
        return Verdict("memory", "MemoryError", trace, done)
    if isinstance(error, UnsupportedValue | codec.Undecodable):
        kind = "UnsupportedValue"
    return Verdict(f"error:{kind}", str(error)[:500], trace, done)


def _of_death(why: str, pid: int, done: int) -> Verdict:
    os.kill(pid, signal.SIGKILL)  # it may live on and only have closed the wire
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == -signal.SIGXCPU:
        return Verdict("timeout", "CPU seconds used up", tests_passed=done)
    if code >= 0:
        reason = f"exit status {code}"
    elif code != -signal.SIGKILL:
        reason = f"died of {signal.Signals(-code).name}"
    else:
        reason = f"left the protocol: {why}"
    return Verdict("exited", reason, tests_passed=done)
