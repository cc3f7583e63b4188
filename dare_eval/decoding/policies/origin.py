"""Dream's ``origin``: the reverse process itself; each mask is revealed independently with the step's probability.

Repaired: a step that would reveal nothing reveals the position nearest to it (parity ``zero_commit_steps`` restores
the plain process). Source: Dream generation_utils, arXiv 2508.15487.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, best


class Origin(Policy):
    """Independent reveals at random."""

    fields: ClassVar[frozenset[str]] = frozenset({"steps", "eps"})
    score = "none"
    noise = True

    def select(self, step: Step) -> Tensor:
        """Return the masks whose draw falls below 1 - t_next / t."""
        assert step.uniform_RM is not None
        revealed_RM = (step.uniform_RM < step.fraction) & step.live_RM
        if "zero_commit_steps" in self.spec.parity:
            return revealed_RM
        lowest_RM = (-step.uniform_RM).masked_fill(~step.live_RM, -torch.inf)
        return revealed_RM | best(step, lowest_RM, [1] * len(step.masks))
