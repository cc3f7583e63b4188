"""The noising processes: which positions are masked, and with which probability each of them was.

All randomness of training objectives is drawn here, from an explicit ``Draws`` source, and the result is stored,
so that whoever scores the same corruption twice (policy, reference) sees the same masks. Leaves out weights and
losses (``dare_train.objectives``).

Shape suffixes: B rows, T positions, N blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.draws import Draws


@dataclass(frozen=True, slots=True)
class Corruption:
    """Noised rows and how they were made."""

    noisy_BT: Tensor
    """Token ids with the mask id at masked positions."""
    masked_BT: Tensor
    """True where a token was replaced: the positions that carry loss."""
    rate_BT: Tensor
    """Probability with which the position was masked, the p of a weight 1/p; float32."""


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
