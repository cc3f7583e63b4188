"""Fairness ledger: what a run spent, and what was unequal between two runs that are compared.

A better score bought with ten times the rollouts is a different claim from one at equal cost; this file makes the
difference visible. It measures nothing itself: training and evaluation fill in a :class:`Budget`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run spent; None means not measured (never read as zero)."""

    prompts: int | None = None
    """Distinct training prompts seen."""
    rollouts: int | None = None
    """Responses sampled for training."""
    rollout_nfe: int | None = None
    """Batched denoiser forwards spent in rollout, summed over rows."""
    rollout_tokens: int | None = None
    """Tokens generated in rollout, padding and EOS excluded."""
    training_forwards: int | None = None
    """Forwards with gradient or for a loss, Monte-Carlo samples counted."""
    training_tokens: int | None = None
    """Tokens that went through training forwards, padding excluded."""
    optimizer_steps: int | None = None
    """Steps of the optimizer."""
    reward_calls: int | None = None
    """Calls of a verifier or reward model."""
    wall_s: float | None = None
    """Wall time in seconds."""
    peak_mem_gib: float | None = None
    """Largest memory of one process or device in GiB."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-ready values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Budget:
        """Return the budget that :meth:`to_dict` stored; entries of other writers are left out."""
        known = {spec.name for spec in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})
