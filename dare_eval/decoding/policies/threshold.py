"""Commit every position at least as confident as the threshold, and always the most confident one.

Source: Fast-dLLM, arXiv 2505.22618, confidence-aware parallel decoding.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, best


class Threshold(Policy):
    """Confidence >= threshold."""

    fields: ClassVar[frozenset[str]] = frozenset({"threshold"})

    def select(self, step: Step) -> Tensor:
        """Return all that pass, at least one."""
        passed_RM = (step.score_RM >= self.threshold) & step.live_RM
        return passed_RM | best(step, step.score_RM, [1] * len(step.masks))
