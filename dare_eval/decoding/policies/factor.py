"""Commit the n best when the n-th is confident enough for n tokens at once: c_(n) >= 1 - factor / (n + 1).

The first failing rank ends the set; as published, a set that fails only at its last rank keeps that rank.
Source: Fast-dLLM, arXiv 2505.22618, factor-based parallel decoding.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, ranks


class Factor(Policy):
    """Weakest-token rule."""

    fields: ClassVar[frozenset[str]] = frozenset({"factor"})

    def select(self, step: Step) -> Tensor:
        """Return the largest leading set that the rule allows, at least one."""
        score_RM = step.score_RM.masked_fill(~step.live_RM, -torch.inf)
        sorted_RM = score_RM.sort(dim=-1, descending=True, stable=True).values
        size_M = torch.arange(1, score_RM.shape[1] + 1, device=score_RM.device)
        fails_RM = sorted_RM < 1 - self.factor / (size_M + 1)
        fails_RM[:, 0] = False
        passed_R1 = (~fails_RM).cumprod(-1).sum(-1, keepdim=True)
        masks_R1 = step.per_row(step.masks)
        passed_R1 = torch.where(passed_R1 == masks_R1 - 1, masks_R1, passed_R1).clamp_min(1)
        return (ranks(score_RM) < passed_R1) & step.live_RM
