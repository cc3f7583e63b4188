"""Objectives: the loss of a unit from its value, its old value and its advantage. Pure functions of tensors.

Shape suffix: U units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dare_train.rl.checks import one_of, within

FAR = 20.0
"""Largest |log ratio| that still moves: e^20 is far outside any clip range, and e^89 would be infinite in float32."""


class UnitLoss(NamedTuple):
    """Loss of each unit and how the ratio stood."""

    loss_U: Tensor
    ratio_U: Tensor
    clipped_U: Tensor
    """True where clipping decided the loss."""


@dataclass(frozen=True, slots=True)
class Clipped:
    """The clipped surrogate ``-min(ratio A, clip(ratio) A)``.

    ``ratio`` maps the difference d of value and old value: ``exp`` gives e^d, ``signed`` gives 1 + d where A > 0 and
    e^d elsewhere (BGPO: both bound the sequence ratio from the pessimistic side, and stay sums over noised rows).
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float = 0.0
    """Bound of ``ratio`` in losses of negative advantages (verl: 3); 0 for none."""
    per_length: bool = False
    """Divide d by the length of the response."""
    ratio: str = "exp"

    uses_ratio = True

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("objective.ratio", self.ratio, ("exp", "signed"))
        within("objective.clip_low", self.clip_low, 0.0)
        within("objective.clip_high", self.clip_high, 0.0)
        if self.dual_clip:
            within("objective.dual_clip", self.dual_clip, 1.0)

    def __call__(self, value_U: Tensor, old_U: Tensor | None, advantage_U: Tensor, length_U: Tensor) -> UnitLoss:
        """Return the losses; without old values the policy is its own old one (ratio 1, gradient of the value)."""
        old_U = value_U.detach() if old_U is None else old_U
        difference_U = (value_U - old_U) / length_U if self.per_length else value_U - old_U
        ratio_U = torch.exp(difference_U.clamp(-FAR, FAR))
        if self.ratio == "signed":
            ratio_U = torch.where(advantage_U > 0, 1.0 + difference_U, ratio_U)
        free_U = -advantage_U * ratio_U
        held_U = -advantage_U * ratio_U.clamp(1.0 - self.clip_low, 1.0 + self.clip_high)
        loss_U = torch.maximum(free_U, held_U)
        if self.dual_clip:
            bound_U = -advantage_U * self.dual_clip
            loss_U = torch.where(advantage_U < 0, torch.minimum(loss_U, bound_U), loss_U)
        return UnitLoss(loss_U, ratio_U.detach(), (held_U > free_U).detach())


@dataclass(frozen=True, slots=True)
class PolicyGradient:
    """``-A value``: no ratio, so no old values (SPG)."""

    uses_ratio = False

    def __call__(self, value_U: Tensor, old_U: Tensor | None, advantage_U: Tensor, length_U: Tensor) -> UnitLoss:
        """Return the losses."""
        return UnitLoss(-advantage_U * value_U, torch.ones_like(advantage_U), torch.zeros_like(advantage_U).bool())
