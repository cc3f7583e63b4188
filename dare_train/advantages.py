"""Advantages of completions that answer one prompt: how much better each is than the others of its group.

Groups come from a vector of group ids, never from the layout of a batch. A group of one has nothing to be compared
with and gets 0 (published code keeps its raw reward there). Equal rewards give 0 under every choice.

Shape suffix: B completions.
"""

from __future__ import annotations

import torch
from torch import Tensor

BASELINES = ("mean", "leave_one_out")


def group_advantages(
    reward_B: Tensor, group_B: Tensor, *, baseline: str = "mean", by_std: bool = False, delta: float = 1e-6
) -> Tensor:
    """Return reward minus the baseline of its group, [B] in at least float32.

    ``baseline`` is the mean of the group, or the mean of its other members. ``by_std`` divides by the group's
    unbiased standard deviation plus ``delta`` (verl 1e-6, trl-like trainers 1e-4).
    """
    if baseline not in BASELINES:
        raise ValueError(f"unknown baseline {baseline!r}")
    wide_B = reward_B if reward_B.dtype in (torch.float32, torch.float64) else reward_B.float()
    place_B = torch.unique(group_B, return_inverse=True)[1]
    groups = int(place_B.max()) + 1 if len(place_B) else 0

    def sums(values_B: Tensor) -> Tensor:
        return torch.zeros(groups, dtype=wide_B.dtype).index_add(0, place_B, values_B)[place_B]

    count_B = sums(torch.ones_like(wide_B))
    centred_B = wide_B - sums(wide_B) / count_B
    others_B = (count_B - 1).clamp_min(1)
    advantage_B = centred_B * count_B / others_B if baseline == "leave_one_out" else centred_B
    if by_std:
        advantage_B = advantage_B / ((sums(centred_B**2) / others_B).sqrt() + delta)
    return torch.where(count_B > 1, advantage_B, torch.zeros_like(advantage_B))
