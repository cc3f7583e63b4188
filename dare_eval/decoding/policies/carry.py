"""Threshold with a budget: refused tokens are carried over to the next step (Fast-dLLM's Dream sampler).

A step considers its share of the budget plus what earlier steps refused; the best is committed, the others when
they reach the threshold. Refusals of the last step prolong the block. What is carried follows from the masks left,
so no state is kept. Source: Fast-dLLM dream/model/generation_utils, alg confidence_threshold.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.schedule import share
from dare_eval.decoding.step import Step, best


class CarryOver(Policy):
    """Best of the candidates, plus those at or above the threshold."""

    fields: ClassVar[frozenset[str]] = frozenset({"steps", "threshold"})

    def select(self, step: Step) -> Tensor:
        """Return what is committed of the candidates."""
        steps = step.steps or 1
        later = sum(share(self.spec.block_length, steps, index) for index in range(step.index + 1, steps))
        considered = [max(left - later, 1) for left in step.masks]
        passed_RM = best(step, step.score_RM, considered) & (step.score_RM >= self.threshold)
        return passed_RM | best(step, step.score_RM, [1] * len(step.masks))
