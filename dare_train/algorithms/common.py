"""Small helpers that several methods share, and what a method asks of the machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one optimizer step asks for, in training rows; ``dare_train.estimate`` turns it into memory and time."""

    at_once: float
    """Rows whose activations exist together."""
    noised: float = 1.0
    """Noised copies of each row that are forwarded."""
    parts: int = 1
    """Sequences that make up a row (a pair has two)."""
    plain_passes: float = 0.0
    """Forwards of each noised copy beside the one that is differentiated."""
    reference: bool = False
    """A second network is held."""


def slices(rows: int, size: int) -> list[slice]:
    """Return consecutive slices of at most ``size`` that cover ``rows``."""
    return [slice(start, start + size) for start in range(0, rows, size)]
