"""A decoding rule: commit every second masked position of the block, always at least one."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, best


class EveryOther(Policy):
    """Even columns first; it reads no setting of its own."""

    fields: ClassVar[frozenset[str]] = frozenset()

    def select(self, step: Step) -> Tensor:
        """Return the even columns among the live ones, or the most confident position when there is none."""
        even_RM = step.live_RM.clone()
        even_RM[:, 1::2] = False
        first_RM = best(step, step.score_RM, [1] * len(step.masks))
        return even_RM | (first_RM & ~even_RM.any(dim=1, keepdim=True))
