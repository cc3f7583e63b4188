"""Errors a person can act on: what was wrong, what was seen, what is allowed, what repairs it.

Every error the command lines show is a ``DareError``; its ``exit_code`` is the process's exit code
(2 usage, 3 incomplete or failed results, 4 data, 5 environment). This module formats nothing for a
terminal; ``dare_eval.panels`` does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DareError(Exception):
    """An error with a remedy.

    ``what`` says what was wrong, ``seen`` the value found, ``allowed`` what would be accepted and ``remedy``
    the command or key that repairs it. The text of the exception joins the parts that are given.
    """

    exit_code = 1

    def __init__(self, what: str, *, seen: object = None, allowed: str = "", remedy: str = "") -> None:
        self.what, self.seen, self.allowed, self.remedy = what, seen, allowed, remedy
        super().__init__(self.render())

    def render(self) -> str:
        """Return the message on as many lines as there are parts."""
        lines = [self.what]
        if self.seen is not None:
            lines.append(f"  seen:    {self.seen}")
        if self.allowed:
            lines.append(f"  allowed: {self.allowed}")
        if self.remedy:
            lines.append(f"  remedy:  {self.remedy}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword parts when the error crosses a process border."""
        return (_rebuild, (type(self), self.what, self.seen, self.allowed, self.remedy))


def _rebuild(kind: type[DareError], what: str, seen: object, allowed: str, remedy: str) -> DareError:
    return kind(what, seen=seen, allowed=allowed, remedy=remedy)


class UsageError(DareError):
    """A wrong argument, key or combination of settings."""

    exit_code = 2


class IncompleteError(DareError):
    """Results are missing or failed."""

    exit_code = 3


class DataError(DareError):
    """A data set or recorded file is missing, damaged or of the wrong shape."""

    exit_code = 4


class SetupError(DareError):
    """The environment lacks a package, a driver or a permission."""

    exit_code = 5


def nearest(name: object, options: Iterable[str]) -> str | None:
    """Return the option most like ``name`` (as text), or None when nothing is close."""
    found = difflib.get_close_matches(str(name), list(options), n=1, cutoff=0.5)
    return found[0] if found else None


def unknown(kind: str, name: object, options: Iterable[str], *, remedy: str = "") -> UsageError:
    """Return the error for a name that is not among ``options``; it names the nearest one and lists all."""
    known = sorted(options)
    hint = nearest(name, known)
    what = f"unknown {kind} '{name}'" + (f"; did you mean '{hint}'?" if hint else "")
    return UsageError(what, seen=str(name), allowed=", ".join(known), remedy=remedy)
