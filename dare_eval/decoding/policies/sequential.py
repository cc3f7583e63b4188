"""Commit the first masks of the block, from left to right, as many as the budget asks for.

Source: SDAR (arXiv 2510.06303), remasking strategy ``sequential``.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step


class Sequential(Policy):
    """Left to right."""

    fields: ClassVar[frozenset[str]] = frozenset({"steps"})

    def counts(self, step: Step) -> list[int] | None:
        """Return the budget, known on the host."""
        return None if step.overwrite else step.due

    def select(self, step: Step) -> Tensor:
        """Return the leading masks."""
        return (step.live_RM.cumsum(-1) <= step.per_row(step.due)) & step.live_RM
