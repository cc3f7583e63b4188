"""Attention without padding: real tokens of all rows and segments laid end to end.

On CUDA in half precision this is torch's ``varlen_attn``. torch has no such kernel for the CPU or for float32; there
each sequence runs through SDPA on its own, which is what the packed kernel computes. Padding columns come out as
zero. Block-causal and dense masks are refused (they need ``flex`` or ``sdpa``).

Legend: N packed queries, M packed keys, Q sequences, H heads, d head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.attention.plan import Attend, Call, bidirectional_rule
from dare_eval.networks.attention.sdpa import dense_attention


@dataclass(frozen=True, slots=True)
class Packing:
    """Which flattened columns are packed, and where each sequence begins, for queries and for keys."""

    query_N: Tensor
    key_M: Tensor
    query_starts: Tensor
    """Cumulative lengths, int32 [Q + 1]."""
    key_starts: Tensor
    query_longest: int
    key_longest: int

    def to(self, device: torch.device) -> Packing:
        """Return the packing on ``device``."""
        return Packing(
            self.query_N.to(device),
            self.key_M.to(device),
            self.query_starts.to(device),
            self.key_starts.to(device),
            self.query_longest,
            self.key_longest,
        )


def plan(call: Call) -> Attend:
    """Return attention over packed sequences."""
    packing = pack(call, bidirectional_rule(call, "varlen"))

    def attend(query_BTHd: Tensor, key_BSKVd: Tensor, value_BSKVd: Tensor) -> Tensor:
        here = packing.to(query_BTHd.device)
        query = query_BTHd.flatten(0, 1)[here.query_N]
        key, value = key_BSKVd.flatten(0, 1)[here.key_M], value_BSKVd.flatten(0, 1)[here.key_M]
        half = query.dtype in (torch.float16, torch.bfloat16)
        packed = _kernel(query, key, value, here) if query.is_cuda and half else _each(query, key, value, here)
        return unpack(packed, here, query_BTHd)

    return attend


def pack(call: Call, rule: AttentionMask) -> Packing:
    """Return the packing of one pass; raises ``UsageError`` for packed segments in a cached pass."""
    keep_BS = torch.ones(call.rows, call.length, dtype=torch.bool, device=call.device)
    if rule.keep_BS is not None:
        keep_BS = keep_BS & rule.keep_BS
    row_B1 = torch.arange(call.rows, device=call.device)[:, None]
    if not call.cached:
        segment_BS = torch.zeros_like(keep_BS, dtype=torch.long) if rule.segment_BS is None else rule.segment_BS
        index_N, starts, longest = _runs(row_B1 * (int(segment_BS.max()) + 1) + segment_BS, keep_BS)
        return Packing(index_N, index_N, starts, starts, longest, longest)
    if rule.segment_BS is not None:
        raise UsageError("packed segments and a cache do not go together", remedy="one sequence per row")
    everything_BT = torch.ones(call.rows, call.width, dtype=torch.bool, device=call.device)
    query_N, query_starts, query_longest = _runs(row_B1.expand_as(everything_BT), everything_BT)
    key_M, key_starts, key_longest = _runs(row_B1.expand_as(keep_BS), keep_BS)
    return Packing(query_N, key_M, query_starts, key_starts, query_longest, key_longest)


def unpack(packed_NHd: Tensor, packing: Packing, like_BTHd: Tensor) -> Tensor:
    """Return packed outputs at their columns, zero elsewhere."""
    flat = torch.zeros_like(like_BTHd).flatten(0, 1)
    return flat.index_copy(0, packing.query_N, packed_NHd).view_as(like_BTHd)


def _runs(sequence_BS: Tensor, keep_BS: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return flattened indices ordered by sequence, cumulative lengths and the longest length."""
    kept_N = keep_BS.flatten().nonzero()[:, 0]
    sequence_N = sequence_BS.flatten()[kept_N]
    order_N = sequence_N.argsort(stable=True)
    lengths = torch.unique_consecutive(sequence_N[order_N], return_counts=True)[1]
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    return kept_N[order_N], starts, int(lengths.max())


def _kernel(query: Tensor, key: Tensor, value: Tensor, packing: Packing) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    out = varlen_attn(
        query,
        key,
        value,
        packing.query_starts,
        packing.key_starts,
        packing.query_longest,
        packing.key_longest,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    assert isinstance(out, Tensor)
    return out


def _each(query: Tensor, key: Tensor, value: Tensor, packing: Packing) -> Tensor:
    query_lengths, key_lengths = packing.query_starts.diff().tolist(), packing.key_starts.diff().tolist()
    queries = torch.split(query, query_lengths)
    keys, values = torch.split(key, key_lengths), torch.split(value, key_lengths)
    triples = zip(queries, keys, values, strict=True)
    return torch.cat([dense_attention(q[None], k[None], v[None], None)[0] for q, k, v in triples])
