"""Bernoulli noise: each answer token is masked with a rate that is drawn per row or per block.

Leaves out weights and losses (``dare_train.objectives``).

Shape suffixes: B rows, T positions, N blocks.
"""

from __future__ import annotations

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
    """Return one rate per row, uniform in [low, high), at every position: [B, T].

    low = 1e-3, high = 1 is LLaDA's process (arXiv 2502.09992, algorithm 2); low = 0 is the one of Dream's
    trainer; 0.3 to 0.8 the band of LLaDA2.
    """
    rate_B = low + (high - low) * draws.rand(ids_BT.shape[0])
    return rate_B[:, None].expand(ids_BT.shape)


def block_rates(ids_BT: Tensor, draws: Draws, *, low: float, high: float, block_length: int) -> Tensor:
    """Return one rate per block of ``block_length`` positions (grid from position 0), at every position: [B, T]."""
    rows, length = ids_BT.shape
    rate_BN = low + (high - low) * draws.rand(rows, -(-length // block_length))
    return rate_BN.repeat_interleave(block_length, dim=1)[:, :length]


def _join_tail(ids_BT: Tensor, maskable_BT: Tensor, masked_BT: Tensor, tail_id: int) -> Tensor:
    is_tail_BT = (ids_BT == tail_id) & maskable_BT
    run_BT = is_tail_BT.flip(1).cumprod(1).flip(1).bool()
    first_B1 = run_BT.int().argmax(1, keepdim=True)
    return torch.where(run_BT, masked_BT.gather(1, first_B1), masked_BT)
