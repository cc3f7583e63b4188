"""Small helpers that several methods share."""

from __future__ import annotations


def slices(rows: int, size: int) -> list[slice]:
    """Return consecutive slices of at most ``size`` that cover ``rows``."""
    return [slice(start, start + size) for start in range(0, rows, size)]
