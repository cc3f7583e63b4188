"""The ids that engines and their clients treat apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIds:
    """What ends a response, and what the rules weigh differently."""

    eos_id: int
    eot_id: int | None
    stop_ids: tuple[int, ...]
    """Every id that ends a response, EOS included."""
    vocab_size: int | None = None
    """Ids of a reply are below it; None does not check."""
    mask_id: int | None = None
    """What no whole reply holds."""


def ends_of(config: Any, spec: Any = None) -> EndIds:
    """Return the ids of a ``NetworkConfig``, and of the spec's own stop tokens."""
    more = () if spec is None else spec.stop_ids
    return EndIds(
        eos_id=config.eos_id,
        eot_id=config.eot_id,
        stop_ids=tuple(dict.fromkeys((config.eos_id, *config.stop_ids, *more))),
        vocab_size=config.vocab_size,
        mask_id=config.mask_id,
    )
