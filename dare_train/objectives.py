"""Losses as pure functions of tensors: token weights, denominators and their sum. No model, no randomness.

A masked-diffusion loss is ``sum_i weight_i * nll_i / denominator`` over masked positions. The denominator is a
number of the whole global batch, computed before the batch is split and passed in, so that the gradient does not
depend on how it is split. ``normaliser`` names:

    sequence       each row by its answer length, then rows (LLaDA)
    batch_tokens   answer tokens of the batch (d1, dllm 'token')
    masked_tokens  masked tokens of the batch (mean cross entropy with uniform weights)
    rows           rows of the batch (dllm 'batch')

Shape suffixes: B rows, T positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dare_train.corruption import Corruption, rate_slope


def token_weights(
    corruption: Corruption,
    maskable_BT: Tensor,
    *,
    weight: str,
    normaliser: str,
    cart_p: float = 0.3,
    context_BT: Tensor | None = None,
    schedule: str = "linear",
) -> Tensor:
    """Return the weight of each masked token, 0 elsewhere: float32 [B, T].

    ``weight`` is ``inverse_rate`` (1/p times the slope of the schedule: the likelihood bound), ``uniform`` or ``cart``
    (which counts unmasked tokens of ``context_BT``). With the normaliser ``sequence`` the answer length of the row is
    divided out here.
    """
    masked_BT = corruption.masked_BT
    if weight == "inverse_rate":
        rate_BT = corruption.rate_BT
        weight_BT = rate_slope(rate_BT, schedule) / rate_BT.clamp_min(torch.finfo(torch.float32).tiny)
    elif weight == "uniform":
        weight_BT = torch.ones_like(corruption.rate_BT)
    elif weight == "cart":
        weight_BT = cart_weights(masked_BT, cart_p, context_BT)
    else:
        raise ValueError(f"unknown weight {weight!r}")
    if normaliser == "sequence":
        weight_BT = weight_BT / maskable_BT.sum(1, keepdim=True).clamp_min(1)
    return torch.where(masked_BT, weight_BT, torch.zeros_like(weight_BT))


def denominator(masked_BT: Tensor, maskable_BT: Tensor, normaliser: str) -> Tensor:
    """Return what the weighted sum of these rows is divided by (a scalar; add it up over parts of a batch)."""
    if normaliser == "batch_tokens":
        return maskable_BT.sum()
    if normaliser == "masked_tokens":
        return masked_BT.sum()
    if normaliser in ("sequence", "rows"):
        return torch.tensor(len(maskable_BT))
    raise ValueError(f"unknown normaliser {normaliser!r}")


def cart_weights(masked_BT: Tensor, p: float, context_BT: Tensor | None = None) -> Tensor:
    """Return Dream's context-adaptive weights: float32 [B, T], 0 at unmasked positions.

    A masked token i gets ``sum_j p (1 - p)^(|i - j| - 1) / 2`` over the unmasked tokens j of the row (those in
    ``context_BT``; default all). A fully masked row gets 0 everywhere and so contributes no loss.
    """
    length = masked_BT.shape[1]
    place_T = torch.arange(length)
    distance_TT = (place_T[:, None] - place_T[None, :]).abs()
    kernel_TT = 0.5 * p * (1.0 - p) ** (distance_TT - 1).clamp_min(0).float()
    context = ~masked_BT if context_BT is None else context_BT & ~masked_BT
    return torch.where(masked_BT, context.float() @ kernel_TT.to(masked_BT.device), torch.zeros(()))


def weighted_nll(logp_X: Tensor, weight_X: Tensor, denominator: float) -> Tensor:
    """Return ``-sum(weight * logp) / denominator`` in float32; 0 with a gradient of 0 when nothing is masked."""
    return -(logp_X * weight_X).sum() / max(denominator, 1.0)
