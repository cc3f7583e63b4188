"""The program's own process: runs the code, then answers the judge's requests.

Everything in here is in the program's hands once its code runs. That is accounted for: the judge believes nothing
but values, and a program that answers requests by other means has only found another way to compute them.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib
import io
import linecache
import operator
import os
import socket
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from . import codec, frames
from .traces import short_trace

MODULE = "program"
_FILE = "<program>"


def run(code: str, sock: socket.socket, *, as_script: bool) -> None:
    """Run ``code`` and serve the judge until it hangs up; the process ends here."""
    pid = os.getpid()
    sys.stdin = open(0, encoding="utf-8", errors="replace")  # noqa: SIM115 - a descriptor
    sys.stdout = _writer(1)
    sys.stderr = _writer(2)
    module = types.ModuleType("__main__" if as_script else MODULE)
    sys.modules[module.__name__] = module
    linecache.cache[_FILE] = (len(code), None, code.splitlines(keepends=True), _FILE)
    try:
        exec(compile(code, _FILE, "exec", dont_inherit=True), module.__dict__)
        if as_script and os.getpid() == pid:
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
    except BaseException as error:  # reported to the judge, whatever it is
        _answer(sock, pid, _failure(error))
    else:
        _answer(sock, pid, ["ok", None])
    if not as_script:
        _Server(sock, pid, module.__dict__).serve()
    os._exit(0)


def _writer(descriptor: int) -> io.TextIOWrapper:
    raw = open(descriptor, "wb", closefd=False)  # noqa: SIM115 - a descriptor, kept for the process's life
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace")


def _answer(sock: socket.socket, pid: int, message: list[Any]) -> None:
    """Send ``message``, unless this is a child that the program forked."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program may have put anything in its place
            stream.flush()
    if os.getpid() != pid:
        os._exit(0)
    frames.send(sock, message)


def _failure(error: BaseException) -> list[Any]:
    if isinstance(error, SystemExit):
        return ["err", "SystemExit", [], str(error.code)[:200], ""]
    kinds = [kind.__name__ for kind in type(error).__mro__]
    text = str(error)[:500] if not isinstance(error, RecursionError | MemoryError) else ""
    return ["err", type(error).__name__, kinds, text, short_trace(error, __file__)]


class _Server:
    """Carries out the judge's requests on the program's globals and on objects handed out before."""

    def __init__(self, sock: socket.socket, pid: int, names: dict[str, Any]) -> None:
        self.sock, self.pid, self.names = sock, pid, names
        self.objects: list[Any] = []
        self.known: dict[int, int] = {}

    def serve(self) -> None:
        while True:
            try:
                request = frames.receive(self.sock)
            except frames.Closed:
                return
            try:
                reply = ["ok", codec.encode(self._carry_out(*request), self._export)]
            except BaseException as error:  # reported to the judge, whatever it is
                reply = _failure(error)
            _answer(self.sock, self.pid, reply)

    def _carry_out(self, operation: str, target: Any, values: list[Any], named: dict[str, Any]) -> Any:
        if operation == "name":
            return [self.names[target]] if target in self.names else []
        subject = codec.decode(target, self._resolve)
        given = [codec.decode(value, self._resolve) for value in values]
        options = {name: codec.decode(value, self._resolve) for name, value in named.items()}
        return _OPERATIONS[operation](subject, *given, **options)

    def _export(self, value: Any) -> list[Any]:
        if isinstance(value, types.ModuleType):
            return ["m", value.__name__]
        if isinstance(value, type) and value.__module__ == "builtins":
            return ["g", "builtins", value.__qualname__]
        lent = getattr(value, "_lent_by_judge", None)
        if isinstance(value, types.FunctionType) and isinstance(lent, int):
            return ["j", lent]
        if id(value) not in self.known:
            self.objects.append(value)  # kept alive, so that the id stays taken
            self.known[id(value)] = len(self.objects) - 1
        return ["h", self.known[id(value)]]

    def _resolve(self, tag: str, item: list[Any]) -> Any:
        if tag == "h":
            return self.objects[item[1]]
        if tag == "j":
            return self._borrowed(item[1])
        module = importlib.import_module(item[1])
        return module if tag == "m" else operator.attrgetter(item[2])(module)

    def _borrowed(self, number: int) -> Callable[..., Any]:
        def call_judge(*values: Any) -> Any:
            frames.send(self.sock, ["back", number, [codec.encode(value, self._export) for value in values]])
            reply = frames.receive(self.sock)
            if reply[0] == "ok":
                return codec.decode(reply[1], self._resolve)
            raise next((getattr(builtins, kind) for kind in reply[2] if hasattr(builtins, kind)), Exception)(reply[3])

        call_judge._lent_by_judge = number  # type: ignore[attr-defined]
        return call_judge


def _next(iterator: Any) -> list[Any]:
    try:
        return [next(iterator)]
    except StopIteration:
        return []


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda subject, /, *values, **named: subject(*values, **named),
    "attr": getattr,
    "set": setattr,
    "item": operator.getitem,
    "put": operator.setitem,
    "in": operator.contains,
    "len": len,
    "bool": bool,
    "str": str,
    "repr": repr,
    "iter": iter,
    "next": _next,
}
