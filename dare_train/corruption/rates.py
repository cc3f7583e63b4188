"""Bernoulli noise: each answer token is masked with a rate that follows from a time drawn per row or per block.

A schedule says how: the rate at time t is t (``linear``) or sin(pi t / 2) (``cosine``). Leaves out losses
(``dare_train.objectives``).

Shape suffixes: B rows, T positions, N blocks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dare_train.corruption.record import Corruption
from dare_train.draws import Draws


def mask_at_rates(
    ids_BT: Tensor,
    maskable_BT: Tensor,
    rate_BT: Tensor,
    uniform_BT: Tensor,
    *,
    mask_id: int,
    tail_id: int | None = None,
) -> Corruption:
    """Mask every maskable position whose uniform number lies below its rate.

    With ``tail_id`` (the EOS id) the trailing run of that token in a row is masked or kept as one, by the number
    of its first position, so that the length of the padding is not learned token by token.
    """
    masked_BT = maskable_BT & (uniform_BT < rate_BT)
    if tail_id is not None:
        masked_BT = _join_tail(ids_BT, maskable_BT, masked_BT, tail_id)
    return Corruption(ids_BT.masked_fill(masked_BT, mask_id), masked_BT, rate_BT)


def sequence_rates(ids_BT: Tensor, draws: Draws, *, low: float, high: float) -> Tensor:
    """Return one time per row, uniform in [low, high), at every position: [B, T]; it is the rate of ``linear``.

    low = 1e-3, high = 1 is LLaDA's process (arXiv 2502.09992, algorithm 2); low = 0 is the one of Dream's
    trainer; 0.3 to 0.8 the band of LLaDA2.
    """
    rate_B = low + (high - low) * draws.rand(ids_BT.shape[0])
    return rate_B[:, None].expand(ids_BT.shape)


def block_rates(ids_BT: Tensor, draws: Draws, *, low: float, high: float, block_length: int) -> Tensor:
    """Return one time per block of ``block_length`` positions (grid from position 0), at every position: [B, T]."""
    rows, length = ids_BT.shape
    rate_BN = low + (high - low) * draws.rand(rows, -(-length // block_length))
    return rate_BN.repeat_interleave(block_length, dim=1)[:, :length]


def scheduled(time_BT: Tensor, schedule: str) -> Tensor:
    """Return the masking rate at each time, in [0, 1] like it; raises ``ValueError`` for an unknown schedule."""
    if schedule == "linear":
        return time_BT
    if schedule == "cosine":
        return (0.5 * math.pi * time_BT).sin()
    raise ValueError(f"unknown schedule {schedule!r}")


def rate_slope(rate_BT: Tensor, schedule: str) -> Tensor:
    """Return how fast the rate grows with time where it is ``rate_BT``.

    Divided by the rate it is the weight of a masked token in the likelihood bound, -alpha'/(1 - alpha) with
    1 - alpha the rate (MDLM, arXiv 2406.07524).
    """
    if schedule == "linear":
        return torch.ones_like(rate_BT)
    if schedule == "cosine":
        return 0.5 * math.pi * (1.0 - rate_BT.square()).clamp_min(0.0).sqrt()
    raise ValueError(f"unknown schedule {schedule!r}")


def _join_tail(ids_BT: Tensor, maskable_BT: Tensor, masked_BT: Tensor, tail_id: int) -> Tensor:
    is_tail_BT = (ids_BT == tail_id) & maskable_BT
    run_BT = is_tail_BT.flip(1).cumprod(1).flip(1).bool()
    first_B1 = run_BT.int().argmax(1, keepdim=True)
    return torch.where(run_BT, masked_BT.gather(1, first_B1), masked_BT)
