"""The check that options of engines share: numbers of things."""

from __future__ import annotations

from typing import Any

from dare_eval.errors import UsageError


def check_counts(options: Any, *names: str) -> None:
    """Raise ``UsageError`` for the first option that is no whole number of at least 1."""
    for name in names:
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"engine option '{name}' is no count", seen=value, allowed=">= 1")
