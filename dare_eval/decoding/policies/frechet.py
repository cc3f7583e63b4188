"""Commit the largest set whose whole confidence profile bounds its joint probability (Frechet profile decoding).

With confidences sorted down, the joint probability of the n best is at least 1 - sum_{j<=n} (1 - c_(j)). The set is
safe while that bound exceeds (1 - c_(n)) by the margin 1 - factor:
    sum_{j<=n} (1 - c_(j)) + (1 - c_(n)) < factor,
which for equal confidences is the factor rule (n + 1)(1 - c) < factor. At least one token is committed.
Source: Fast-dLLM++, arXiv 2606.02955 (there factor = 1 - margin, margin 0).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, ranks


class FrechetProfile(Policy):
    """Profile rule."""

    fields: ClassVar[frozenset[str]] = frozenset({"factor"})

    def select(self, step: Step) -> Tensor:
        """Return the largest set that the bound allows."""
        score_RM = step.score_RM.masked_fill(~step.live_RM, -torch.inf)
        doubt_RM = 1 - score_RM.sort(dim=-1, descending=True, stable=True).values
        safe_RM = doubt_RM.cumsum(-1) + doubt_RM < self.factor
        # Doubt only grows along the profile, so the safe sizes are a prefix.
        return (ranks(score_RM) < safe_RM.sum(-1, keepdim=True).clamp_min(1)) & step.live_RM
