"""Checks of constants, made when a part is built: a wrong value is answered before a weight is read."""

from __future__ import annotations

from collections.abc import Sequence

from dare_eval.errors import UsageError, unknown


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise ``UsageError`` with the nearest name unless ``value`` is allowed."""
    if value not in allowed:
        raise unknown(name, value, allowed)


def within(name: str, value: float, low: float, high: float = float("inf")) -> None:
    """Raise ``UsageError`` unless ``low <= value <= high``."""
    if not low <= value <= high:
        top = "or more" if high == float("inf") else f"to {high:g}"
        raise UsageError(f"{name} is out of range", seen=str(value), allowed=f"{low:g} {top}")
