"""The ids that engines and their clients treat apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIds:
    """What ends a response, and what the rules weigh differently."""

    eos_id: int
    eot_id: int | None
    stop_ids: tuple[int, ...]
    """Every id that ends a response, EOS included."""
