"""Commit a fixed number of tokens per step, the best first: by confidence, margin or entropy.

Sources: LLaDA low-confidence remasking (arXiv 2502.09992); Dream maskgit_plus, topk_margin, entropy with
``alg_temp`` (arXiv 2508.15487); SDAR low_confidence_static (arXiv 2510.06303).
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.sampler import COLDEST
from dare_eval.decoding.step import Step, best
from dare_eval.spec import DecodeSpec


class Quota(Policy):
    """The tokens due at this pass, highest probability first."""

    fields: ClassVar[frozenset[str]] = frozenset({"steps", "alg_temp", "eps"})

    def __init__(self, spec: DecodeSpec) -> None:
        super().__init__(spec)
        self.noise = spec.alg_temp is not None

    def counts(self, step: Step) -> list[int] | None:
        """Return the budget, known on the host."""
        return None if step.overwrite else step.due

    def select(self, step: Step) -> Tensor:
        """Return the best; with ``alg_temp``, a draw without replacement from softmax(score / alg_temp)."""
        score_RM = step.score_RM
        if step.uniform_RM is not None and self.spec.alg_temp is not None:
            # Adding Gumbel noise and taking the largest draws without replacement.
            temperature = max(self.spec.alg_temp, COLDEST)
            score_RM = score_RM / temperature - (-step.uniform_RM.clamp_min(1e-300).log()).log()
        return best(step, score_RM, step.due)


class EntropyQuota(Quota):
    """The tokens due, lowest entropy first."""

    score = "entropy"


class MarginQuota(Quota):
    """The tokens due, largest distance between the two best values first."""

    score = "margin"
