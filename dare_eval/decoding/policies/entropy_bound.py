"""Commit the positions of lowest entropy while their summed entropy stays below a bound, at least one.

The bound is ``threshold``, in nats. The published code stops with an error and sums over the block instead of the
vocabulary; this is what its description means. Sources: EB-sampler, arXiv 2505.24857; SDAR ``entropy_bounded``.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.step import Step, ranks


class EntropyBound(Policy):
    """Cumulative entropy below the bound."""

    fields: ClassVar[frozenset[str]] = frozenset({"threshold"})
    score = "entropy"

    def select(self, step: Step) -> Tensor:
        """Return the longest prefix by ascending entropy."""
        score_RM = step.score_RM.masked_fill(~step.live_RM, -torch.inf)
        entropy_RM = -score_RM.sort(dim=-1, descending=True, stable=True).values
        fits_RM = entropy_RM.cumsum(-1) < self.threshold
        fits_RM[:, 0] = True
        return (ranks(score_RM) < fits_RM.cumprod(-1).sum(-1, keepdim=True)) & step.live_RM
