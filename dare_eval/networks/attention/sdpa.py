"""Scaled dot-product attention of torch: the reference kernel, with a dense mask, on every device, with gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.attention.plan import Attend, Call


def plan(call: Call) -> Attend:
    """Return attention under the call's mask; a float mask is added to the scores (parity switches)."""
    mask = call.mask.dense(call.column_BT, call.length) if isinstance(call.mask, AttentionMask) else call.mask
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(call.dtype)

    def attend(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor) -> Tensor:
        here = None if mask is None else mask.to(query_BTHd.device)
        return dense_attention(query_BTHd, key_BSKVd, value_BSKVd, here)

    return attend


def dense_attention(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(QK/sqrt(d) + mask)V with heads in the third axis, [B, T, H, d]."""
    grouped = query_BTHd.shape[2] != key_BSKVd.shape[2]
    out_BHTd = scaled_dot_product_attention(
        query_BTHd.transpose(1, 2),
        key_BSKVd.transpose(1, 2),
        value_BSKVd.transpose(1, 2),
        attn_mask=mask,
        enable_gqa=grouped,
    )
    return out_BHTd.transpose(1, 2)
