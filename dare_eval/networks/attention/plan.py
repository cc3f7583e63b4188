"""Choose the attention kernel of a forward pass and prepare its mask once for all layers.

``auto`` is SDPA on the CPU; on CUDA it is ``flex`` for block-causal masks over long sequences and ``varlen`` for
padded or packed bidirectional ones in half precision, SDPA otherwise. A kernel that cannot express a mask refuses it
by name; none falls back in silence.

Legend: B rows, T query columns, S key columns, H heads, KV key/value heads, d head size.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import UsageError, unknown
from dare_eval.networks.attention.masks import AttentionMask

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(queries [B,T,H,d], keys [B,S,KV,d], values [B,S,KV,d]) to [B,T,H,d]."""
_KERNELS = {"sdpa": "sdpa", "flex": "flex", "varlen": "varlen", "flash_attention_2": "flash"}
# Shorter sequences do not repay building a block mask at each pass.
FLEX_FROM = 512
BACKENDS = ("auto", *_KERNELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a kernel needs to know of a forward pass before the first layer runs."""

    mask: Tensor | AttentionMask | None
    column_BT: Tensor
    """Canvas column of each query, [B or 1, T]."""
    rows: int
    length: int
    """Key columns S."""
    dtype: torch.dtype
    cached: bool

    @property
    def device(self) -> torch.device:
        """Device of the indices."""
        return self.column_BT.device

    @property
    def width(self) -> int:
        """Query columns T."""
        return self.column_BT.shape[1]

    def rule(self) -> AttentionMask | None:
        """Return the mask as a rule: itself, or a key-padding tensor [B,1,1,S] turned into one; else None."""
        if self.mask is None:
            return AttentionMask()
        if isinstance(self.mask, AttentionMask):
            return self.mask
        shape = self.mask.shape
        if self.mask.dtype == torch.bool and self.mask.ndim == 4 and shape[1:3] == (1, 1) and shape[3] == self.length:
            return AttentionMask(keep_BS=self.mask[:, 0, 0])
        return None


def check_backend(backend: str) -> str:
    """Return ``backend``; raises ``UsageError`` with the nearest name when there is none of that name."""
    if backend not in BACKENDS:
        raise unknown("attention backend", backend, BACKENDS)
    return backend


def choose_backend(call: Call) -> str:
    """Return the kernel that ``auto`` means for this call."""
    rule = call.rule()
    if call.device.type != "cuda" or rule is None or rule.is_full:
        return "sdpa"
    if rule.is_bidirectional:
        half = call.dtype in (torch.bfloat16, torch.float16)
        return "varlen" if half and not (call.cached and rule.segment_BS is not None) else "sdpa"
    return "flex" if call.length >= FLEX_FROM and not call.cached else "sdpa"


def plan_attention(backend: str, call: Call) -> Attend:
    """Return the attention function of one forward pass."""
    name = choose_backend(call) if backend == "auto" else backend
    module = importlib.import_module(f"dare_eval.networks.attention.{_KERNELS[name]}")
    plan: Callable[[Call], Attend] = module.plan
    return plan(call)


def bidirectional_rule(call: Call, backend: str) -> AttentionMask:
    """Return the rule of a call for a kernel without arbitrary masks; raises ``UsageError`` where it needs one."""
    rule = call.rule()
    if rule is None or not rule.is_bidirectional:
        raise UsageError(
            f"attention backend '{backend}' has no arbitrary masks",
            seen="a block-causal or dense mask",
            allowed="full attention, key padding or packed segments",
            remedy="attn_backend='flex' or 'sdpa'",
        )
    return rule
