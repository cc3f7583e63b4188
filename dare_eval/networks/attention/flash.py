"""flash-attn 2 kernels (extra ``flash``, CUDA, half precision): varlen for whole passes, kvcache for cached ones.

Written against the 2.8 signatures of ``flash_attn_varlen_func`` and ``flash_attn_with_kvcache``. The second reads our
cache in place (new keys are already written) and takes one contiguous run of real columns per row, as left or right
padding leaves it; anything else goes through the packed kernel. It has no backward pass; caches never need one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.attention.plan import Attend, Call, bidirectional_rule
from dare_eval.networks.attention.varlen import pack, unpack
from dare_eval.networks.optional import optional


def plan(call: Call) -> Attend:
    """Return attention by flash-attn; raises ``SetupError`` without the package, ``UsageError`` for other masks."""
    flash = optional("flash_attn", purpose="attention backend 'flash_attention_2'", extra="flash")
    rule = bidirectional_rule(call, "flash_attention_2")
    spans = _spans(call, rule) if call.cached else None
    return _packed(call, rule, flash) if spans is None else _cached(spans, flash)


def _packed(call: Call, rule: AttentionMask, flash: Any) -> Attend:
    packing = pack(call, rule)

    def attend(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor) -> Tensor:
        here = packing.to(query_BTHd.device)
        packed = flash.flash_attn_varlen_func(
            query_BTHd.flatten(0, 1)[here.query_N],
            key_BSKVd.flatten(0, 1)[here.key_M],
            value_BSKVd.flatten(0, 1)[here.key_M],
            cu_seqlens_q=here.query_starts,
            cu_seqlens_k=here.key_starts,
            max_seqlen_q=here.query_longest,
            max_seqlen_k=here.key_longest,
            causal=False,
        )
        return unpack(packed, here, query_BTHd)

    return attend


def _cached(spans: tuple[Tensor, Tensor], flash: Any) -> Attend:
    first_B, end_B = spans

    def attend(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor) -> Tensor:
        device = query_BTHd.device
        result: Tensor = flash.flash_attn_with_kvcache(
            query_BTHd,
            key_BSKVd,
            value_BSKVd,
            cache_seqlens=end_B.to(device),
            cache_leftpad=first_B.to(device),
            causal=False,
        )
        return result

    return attend


def _spans(call: Call, rule: AttentionMask) -> tuple[Tensor, Tensor] | None:
    """Return first real column and end per row, int32 [B], or None when a row's real columns are not one run."""
    keep_BS = torch.ones(call.rows, call.length, dtype=torch.bool, device=call.device)
    if rule.segment_BS is not None:
        return None
    if rule.keep_BS is not None:
        keep_BS = keep_BS & rule.keep_BS
    column_S = torch.arange(call.length, device=call.device)
    first_B = keep_BS.int().argmax(dim=1)
    end_B = torch.where(keep_BS, column_S + 1, 0).amax(dim=1)
    if not bool((keep_BS.sum(dim=1) == end_B - first_B).all()):
        return None
    return first_B.to(torch.int32), end_B.to(torch.int32)
