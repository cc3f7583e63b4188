"""Commit a fixed number of tokens per step in random order (LLaDA's random remasking, arXiv 2502.09992)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, best


class RandomQuota(Policy):
    """The tokens due, in random order."""

    fields: ClassVar[frozenset[str]] = frozenset({"steps", "eps"})
    score = "none"
    noise = True

    def counts(self, step: Step) -> list[int] | None:
        """Return the budget, known on the host."""
        return None if step.overwrite else step.due

    def select(self, step: Step) -> Tensor:
        """Return a uniform choice."""
        assert step.uniform_RM is not None
        return best(step, step.uniform_RM.masked_fill(~step.live_RM, -torch.inf), step.due)
