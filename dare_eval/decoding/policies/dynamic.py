"""Commit all positions above the threshold when they are at least as many as are due, else the best that are due.

With ``steps`` the budget is the block length over its steps (SDAR low_confidence_dynamic, LLaDA2.0); with
``min_transfer`` it is that number at every pass (LLaDA2.1, where ``edit_threshold`` adds token editing).
Sources: SDAR, arXiv 2510.06303; LLaDA2.0, arXiv 2512.15745.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, best


class Dynamic(Policy):
    """Confidence > threshold, at least the tokens due."""

    fields: ClassVar[frozenset[str]] = frozenset(
        {"steps", "threshold", "min_transfer", "edit_threshold", "max_post_steps"}
    )

    def select(self, step: Step) -> Tensor:
        """Return the confident positions or the best ones."""
        high_RM = (step.score_RM > self.threshold) & step.live_RM
        enough_R1 = high_RM.sum(-1, keepdim=True) >= step.per_row(step.due)
        return high_RM.where(enough_R1, best(step, step.score_RM, step.due))
