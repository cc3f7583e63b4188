"""Self-distillation between siblings of a tree: the parent's distribution moves to that of its better children.

At each position that some better child fixed, ``KL(q || p(. | parent))`` with q the children's tokens, weighted by a
softmax of their advantages (d-TreeRPO, arXiv 2512.09675). q lives on tokens that were sampled, whose log-probabilities
are scored anyway, so the term is linear in the values of the policy loss and needs no logits of the whole vocabulary.

Shape suffixes: U units, P (parent, position) pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.rl.checks import within
from dare_train.rl.units import Scored, Units


@dataclass(frozen=True, slots=True)
class Distilled:
    """The term as ``constant - sum_u weight_U value_U``, before division by ``pairs`` of the whole batch."""

    weight_U: Tensor
    constant: float
    pairs: float


@dataclass(frozen=True, slots=True)
class SelfDistillation:
    """Weight and temperature follow the progress s of the run, 0 to 1: the weight rises, the temperature falls."""

    weight: float = 3e-3
    growth: float = 2.0
    temperature: float = 2.0
    decay: float = 0.7

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        within("distil.weight", self.weight, 0.0)
        within("distil.growth", self.growth, 1e-6)

    def strength(self, progress: float) -> float:
        """Return ``weight (e^(growth s) - 1) / (e^growth - 1)``."""
        return self.weight * math.expm1(self.growth * progress) / math.expm1(self.growth)

    def __call__(self, scored: Scored, units: Units, token_U: Tensor, progress: float) -> Distilled:
        """Return the term for token units in the states of their parents; ``token_U`` are the children's tokens."""
        softness = max(self.temperature * (1.0 - progress) ** self.decay, 1e-6)
        weight_U, constant, pairs = torch.zeros(len(units)), 0.0, 0
        for key in torch.unique(scored.siblings_S[scored.siblings_S >= 0]).tolist():
            better_S = (scored.siblings_S == key) & (scored.advantage_S > 0)
            if int(better_S.sum()) < 2:
                continue
            members = better_S[units.sample_U].nonzero().flatten()
            for column in torch.unique(units.column_U[members]).tolist():
                there = members[units.column_U[members] == column]
                q = torch.softmax(units.advantage_U[there].double() / softness, 0)
                weight_U[there] += q.float()
                together = torch.zeros(int(token_U[there].max()) + 1, dtype=torch.float64)
                together.index_add_(0, token_U[there], q)
                constant += float(torch.special.xlogy(together, together).sum())
                pairs += 1
        return Distilled(weight_U, constant, float(pairs))
