"""The judge's side of the wire: the program's functions and objects as proxies, its output drained on the way.

A proxy forwards calls, attributes, items, iteration, length, truth and text. It never forwards comparison or
arithmetic: an object of the program's own class equals nothing but itself, so no ``__eq__`` of it is ever asked.
"""

from __future__ import annotations

import builtins
import importlib
import os
import select
import socket
import sys
import types
from typing import Any

from . import codec, frames

# Raised inside a test they would end a loop or the judge instead of reporting the program's error.
_NOT_RAISED = {"StopIteration", "StopAsyncIteration", "GeneratorExit"}
_PLAIN_DUNDER = {"__name__", "__qualname__", "__doc__"}


class ProgramDied(BaseException):
    """The program's process ended or broke the protocol; no ``except Exception`` of a test may hide it."""


class ProgramExited(BaseException):
    """The program raised SystemExit."""


class ProgramError(Exception):
    """The program raised an exception of a class of its own."""


class UnsupportedValue(Exception):
    """A test passed an object that cannot be handed to another process."""


class SetupFailed(BaseException):
    """The program's process could not be isolated, so nothing was run in it."""


class Output:
    """What the program printed: the first ``cap`` bytes are kept, the rest is read and dropped."""

    def __init__(self, descriptor: int, cap: int) -> None:
        self.descriptor, self.cap = descriptor, cap
        self.kept, self.total = bytearray(), 0
        os.set_blocking(descriptor, False)

    def drain(self) -> bool:
        """Read what is there; returns False at the end of the stream."""
        try:
            part = os.read(self.descriptor, 2**16)
        except BlockingIOError:
            return True
        self.total += len(part)
        self.kept += part[: max(0, self.cap - len(self.kept))]
        return bool(part)


class Program:
    """The running program as the judge sees it."""

    def __init__(self, sock: socket.socket, output: Output) -> None:
        self.sock, self.output = sock, output
        self.uses, self.dead = 0, ""
        self._lent: list[Any] = []
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._poll.register(output.descriptor, select.POLLIN)

    def message(self) -> list[Any]:
        """Return the next message of the program, draining its output meanwhile; raises ``ProgramDied``."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            if self.output.descriptor in ready and not self.output.drain():
                self._poll.unregister(self.output.descriptor)
            if self.sock.fileno() in ready:
                return self._receive()

    def _receive(self) -> list[Any]:
        try:
            message = frames.receive(self.sock)
            if not isinstance(message, list) or not message:
                raise frames.Closed("not a message of the protocol")
        except (frames.Closed, RecursionError) as error:
            self.dead = str(error)
            raise ProgramDied(self.dead) from error
        return message

    def loaded(self) -> None:
        """Wait until the code has run; raises what it raised, ``SetupFailed`` when its process could not be set up."""
        first = self.message()
        if first[0] == "setup":
            raise SetupFailed(str(first[1]))
        self._read(first)

    def ask(self, operation: str, target: Any, /, *values: Any, **named: Any) -> Any:
        """Have the program carry out one operation and return its value; raises what the program raised."""
        self.uses += 1
        request = [
            operation,
            self._out(target),
            [self._out(v) for v in values],
            {k: self._out(v) for k, v in named.items()},
        ]
        try:
            frames.send(self.sock, request)
        except OSError as error:
            self.dead = str(error)
            raise ProgramDied(self.dead) from error
        while True:
            reply = self.message()
            if reply[0] == "back":
                self._call_back(reply)
            else:
                return self._read(reply)

    def lookup(self, name: str) -> Any:
        """Return the program's global ``name``; raises ``KeyError`` when it has none."""
        found = self.ask("name", name)
        if found == []:
            raise KeyError(name)
        if isinstance(found[0], Remote):
            self.uses -= 1  # to look up a function is not to use it; to read a value is
        return found[0]

    def _read(self, reply: list[Any]) -> Any:
        try:
            if reply[0] == "ok":
                return codec.decode(reply[1], self._resolve)
            kind, bases, text, trace = reply[1:5]
            if reply[0] != "err" or not all(isinstance(part, str) for part in (kind, text, trace)):
                raise codec.Undecodable("neither a value nor an error")
        except (codec.Undecodable, IndexError, KeyError, TypeError, ValueError) as error:
            self.dead = f"the answer cannot be read: {error}"
            raise ProgramDied(self.dead) from error
        raise as_exception(kind, bases, text, trace)

    def _call_back(self, reply: list[Any]) -> None:
        """Call a function that a test lent to the program."""
        try:
            function = self._lent[reply[1]]
            values = [codec.decode(value, self._resolve) for value in reply[2]]
            answer = ["ok", self._out(function(*values))]
        except (ProgramDied, ProgramExited):
            raise
        except Exception as error:  # the program sees it as it would see the error of a local function
            answer = ["err", type(error).__name__, [c.__name__ for c in type(error).__mro__], str(error)[:500], ""]
        frames.send(self.sock, answer)

    def _out(self, value: Any) -> Any:
        return codec.encode(value, self._export)

    def _export(self, value: Any) -> list[Any]:
        if isinstance(value, Remote):
            return ["h", object.__getattribute__(value, "_handle")]
        if isinstance(value, types.ModuleType):
            return ["m", value.__name__]
        if getattr(value, "__module__", None) in sys.stdlib_module_names and hasattr(value, "__qualname__"):
            return ["g", value.__module__, value.__qualname__]
        if isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
            self._lent.append(value)
            return ["j", len(self._lent) - 1]
        raise UnsupportedValue(f"a {type(value).__name__} cannot be handed to the program")

    def _resolve(self, tag: str, item: list[Any]) -> Any:
        if tag == "h" and isinstance(item[1], int):
            return Remote(self, item[1])
        if tag == "j":
            return self._lent[item[1]]
        if tag == "m" and item[1] in (*sys.stdlib_module_names, "numpy"):
            return importlib.import_module(item[1])
        if tag == "g" and item[1] == "builtins" and isinstance(getattr(builtins, item[2], None), type):
            return getattr(builtins, item[2])
        raise codec.Undecodable(f"tag {tag!r}")


class Remote:
    """An object that lives in the program."""

    __slots__ = ("_handle", "_program")

    def __init__(self, program: Program, handle: int) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_handle", handle)

    def __call__(self, /, *values: Any, **named: Any) -> Any:
        """Call it in the program."""
        return _ask(self, "call", *values, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _PLAIN_DUNDER:
            raise AttributeError(name)
        return _ask(self, "attr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "put", key, value)

    def __contains__(self, value: Any) -> bool:
        return _ask(self, "in", value) is True

    def __len__(self) -> int:
        return int(_ask(self, "len"))

    def __bool__(self) -> bool:
        return _ask(self, "bool") is True

    def __iter__(self) -> Any:
        return _ask(self, "iter")

    def __next__(self) -> Any:
        found = _ask(self, "next")
        if found == []:
            raise StopIteration
        return found[0]

    def __str__(self) -> str:
        return str(_ask(self, "str"))

    def __repr__(self) -> str:
        return str(_ask(self, "repr"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and _handle(other) == _handle(self)

    def __hash__(self) -> int:
        return hash(_handle(self))

    def __copy__(self) -> Remote:
        return self

    def __deepcopy__(self, _: Any) -> Remote:
        return self


def _ask(remote: Remote, operation: str, /, *values: Any, **named: Any) -> Any:
    program: Program = object.__getattribute__(remote, "_program")
    return program.ask(operation, remote, *values, **named)


def _handle(remote: Remote) -> int:
    found: int = object.__getattribute__(remote, "_handle")
    return found


def as_exception(kind: str, bases: Any, text: str, trace: str) -> BaseException:
    """Return what the judge raises for an exception of the program: the nearest built-in class, as tests expect it."""
    if kind == "SystemExit":
        return ProgramExited(text)
    made: BaseException = ProgramError(text)
    for name in bases if isinstance(bases, list) else []:
        found = getattr(builtins, name, None) if isinstance(name, str) and name not in _NOT_RAISED else None
        if isinstance(found, type) and issubclass(found, Exception):
            try:
                made = found(text)
            except TypeError:  # UnicodeDecodeError and its like want five arguments
                continue
            break
    made.program_error = (kind[:80] if kind.isidentifier() else "Exception", trace[:2000])  # type: ignore[attr-defined]
    return made
