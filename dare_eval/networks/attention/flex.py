"""FlexAttention: any mask of the builder without a dense matrix; compiled on CUDA, eager on the CPU.

torch has no CPU backward for it, so a pass that needs gradients on the CPU is refused here rather than deep inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from dare_eval.errors import UsageError
from dare_eval.networks.attention.masks import AttentionMask, MaskFunction
from dare_eval.networks.attention.plan import Attend, Call


def plan(call: Call) -> Attend:
    """Return attention under the call's mask function; the block mask is built once per device."""
    if isinstance(call.mask, Tensor) and call.mask.dtype != torch.bool:
        raise UsageError("attention backend 'flex' takes no additive mask", remedy="attn_backend='sdpa'")
    made: dict[torch.device, BlockMask | None] = {}

    def attend(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor) -> Tensor:
        device = query_BTHd.device
        if device not in made:
            made[device] = _block_mask(call, device)
        if device.type == "cpu" and torch.is_grad_enabled() and query_BTHd.requires_grad:
            raise UsageError("attention backend 'flex' has no backward pass on the CPU", remedy="attn_backend='sdpa'")
        out_BHTd = _kernel(device.type)(
            query_BTHd.transpose(1, 2),
            key_BSKVd.transpose(1, 2),
            value_BSKVd.transpose(1, 2),
            block_mask=made[device],
            enable_gqa=query_BTHd.shape[2] != key_BSKVd.shape[2],
        )
        result: Tensor = out_BHTd.transpose(1, 2)
        return result

    return attend


def _block_mask(call: Call, device: torch.device) -> BlockMask | None:
    function = _mask_function(call, device)
    if function is None:
        return None
    return create_block_mask(function, call.rows, None, call.width, call.length, device=device)


def _mask_function(call: Call, device: torch.device) -> MaskFunction | None:
    if call.mask is None:
        return None
    if isinstance(call.mask, AttentionMask):
        return None if call.mask.is_full else call.mask.to(device).function(call.column_BT.to(device))
    dense_B1TS = call.mask.to(device).expand(call.rows, 1, call.width, call.length)

    def allowed(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return dense_B1TS[row, 0, query, key]

    return allowed


@functools.cache
def _kernel(device_type: str) -> Callable[..., Any]:
    kernel: Any = torch.compile(flex_attention, dynamic=True) if device_type == "cuda" else flex_attention
    return kernel  # type: ignore[no-any-return]
