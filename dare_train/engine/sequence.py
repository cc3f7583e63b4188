"""Ulysses sequence parallelism: processes of a group hold different columns of the same rows.

Embeddings, projections, feed-forward networks and the head run on a process's own columns; for attention one
all-to-all gives each process all columns of some heads, and another gives the columns back (DeepSpeed-Ulysses,
arXiv 2309.14509). So attention kernels, masks and caches stay what they are, with fewer heads. Columns that do not
divide are filled up with ones that nobody attends to; key/value heads that do not divide are repeated; query heads
must divide. Every exchange is differentiable: the gradient of a process is that of the sum of all processes' losses.

Leaves out rows (``World.share``) and weights (``dare_train.engine.sharding``). Legend: B rows, T columns, t own
columns, G processes of the group, H heads, d head size, X any trailing shape.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from dare_eval.errors import UsageError
from dare_train.engine.world import World

_GROUPS: dict[int, Any] = {}
# torch 2.13 renames these two and warns of the old names.
_ALL_GATHER: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_REDUCE_SCATTER: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class SequenceSplit:
    """One group's way to share columns; ``dare_eval.networks.splitting.ColumnSplit`` says what a network needs."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)

    def part(self, states_BTX: Tensor) -> Tensor:
        """Return this process's columns, [B, t, ...]; zeros stand behind the last column."""
        length = states_BTX.shape[1]
        own = max(1, -(-length // self.size))
        filled = _widened(states_BTX, own * self.size)
        return filled.narrow(1, self.rank * own, own)

    def whole(self, states_BtX: Tensor, length: int) -> Tensor:
        """Return the columns of all processes, [B, length, ...]."""
        return _apply(_Gather, states_BtX, self.group).transpose(0, 1).flatten(1, 2)[:, :length]

    def to_heads(self, states_BtHd: Tensor, length: int) -> Tensor:
        """Return all columns of this process's heads, [B, length, H / G, d]."""
        repeats = self.size // math.gcd(states_BtHd.shape[2], self.size)
        states_BtHd = states_BtHd.repeat_interleave(repeats, dim=2) if repeats > 1 else states_BtHd
        rows, own, heads, size = states_BtHd.shape
        by_head = states_BtHd.reshape(rows, own, self.size, heads // self.size, size).permute(2, 0, 1, 3, 4)
        return _apply(_Swap, by_head, self.group).transpose(0, 1).flatten(1, 2)[:, :length]

    def to_columns(self, states_BThd: Tensor) -> Tensor:
        """Return all heads of this process's columns, [B, t, H, d]."""
        own = max(1, -(-states_BThd.shape[1] // self.size))
        filled = _widened(states_BThd, own * self.size)
        by_column = filled.reshape(len(filled), self.size, own, *filled.shape[2:]).transpose(0, 1)
        return _apply(_Swap, by_column, self.group).permute(1, 2, 0, 3, 4).flatten(2, 3)

    def cached_heads(self, heads: int) -> int:
        """Return how many of a network's key/value heads one process holds."""
        return heads * (self.size // math.gcd(heads, self.size)) // self.size


def make_split(world: World) -> SequenceSplit | None:
    """Return the split of this process's group, None when columns are not split; every process must call it."""
    return None if world.split == 1 else SequenceSplit(group_of(world))


def group_of(world: World) -> Any:
    """Return the processes that share rows with this one; every process must ask before any uses it."""
    if world.split not in _GROUPS:
        starts = range(0, world.processes, world.split)
        ranks = [list(range(start, start + world.split)) for start in starts]
        _GROUPS[world.split] = [dist.new_group(group) for group in ranks][world.rank]
    return _GROUPS[world.split]


def check_split(split: int, heads: int) -> None:
    """Refuse a split that does not divide the attention heads; raises ``UsageError`` with the ones that do."""
    if heads % split:
        raise UsageError(
            "train.sequence_parallel does not divide the attention heads",
            seen=f"sequence_parallel = {split}, {heads} heads",
            allowed=", ".join(str(number) for number in range(1, heads + 1) if heads % number == 0),
            remedy=f"train.sequence_parallel = {math.gcd(heads, split)}",
        )


def _apply(exchange: Any, states: Tensor, group: Any) -> Tensor:
    result: Tensor = exchange.apply(states.contiguous(), group)
    return result


def _widened(states_BTX: Tensor, width: int) -> Tensor:
    missing = width - states_BTX.shape[1]
    if not missing:
        return states_BTX
    return functional.pad(states_BTX, (0, 0) * (states_BTX.ndim - 2) + (0, missing))


class _Swap(torch.autograd.Function):
    """Sends slice g of the first axis to process g and stacks what comes back."""

    @staticmethod
    def forward(ctx: Any, parts_G: Tensor, group: Any) -> Tensor:
        ctx.group = group
        received_G = torch.empty_like(parts_G)
        dist.all_to_all_single(received_G, parts_G, group=group)
        return received_G

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        slope_G = slopes[0].contiguous()
        received_G = torch.empty_like(slope_G)
        dist.all_to_all_single(received_G, slope_G, group=ctx.group)
        return received_G, None


class _Gather(torch.autograd.Function):
    """Stacks every process's part; backward adds the slopes that the processes have for one part."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: Any) -> Tensor:
        ctx.group = group
        size = dist.get_world_size(group)
        joined = torch.empty((size * part.shape[0], *part.shape[1:]), dtype=part.dtype, device=part.device)
        _ALL_GATHER(joined, part, group=group)
        return joined.view(size, *part.shape)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        slope = slopes[0].flatten(0, 1).contiguous()
        size = dist.get_world_size(ctx.group)
        summed = torch.empty((slope.shape[0] // size, *slope.shape[1:]), dtype=slope.dtype, device=slope.device)
        _REDUCE_SCATTER(summed, slope, group=ctx.group)
        return summed, None
