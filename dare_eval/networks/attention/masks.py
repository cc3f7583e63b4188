"""One rule of who may attend to whom, given out as a dense mask, as a mask function, and as packed lengths.

A canvas column belongs to a row, may be padding, may lie in a block (block-causal attention: a block sees itself
and earlier blocks), in a packed segment (segments do not see each other) and in the clean or the noisy copy of a
block-diffusion training sequence (noisy blocks see themselves and strictly earlier clean blocks; clean columns see
clean columns only). The rule is written once, on index tensors, so that the dense and the functional form agree.

Legend: B rows (or 1), S key columns, T query columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(row, head, query, key) to bool, the form that ``flex_attention`` takes."""


@dataclass(frozen=True, eq=False, slots=True)
class AttentionMask:
    """Who may attend to whom over the S columns of a canvas; every part is optional, none means full attention."""

    keep_BS: Tensor | None = None
    """True for real tokens, False for padding."""
    block_BS: Tensor | None = None
    """Block number of each column; a column sees columns of blocks up to its own."""
    segment_BS: Tensor | None = None
    """Packed sequence of each column; columns see their own segment only."""
    noisy_BS: Tensor | None = None
    """True for the noisy copy of a block-diffusion training sequence; needs ``block_BS``."""

    @classmethod
    def padding(cls, keep_BS: Tensor) -> AttentionMask:
        """Return bidirectional attention over the columns where ``keep_BS`` is True."""
        return cls(keep_BS=keep_BS.bool())

    @classmethod
    def block_causal(
        cls,
        length: int,
        block_length: int,
        *,
        keep_BS: Tensor | None = None,
        start_B: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> AttentionMask:
        """Return block-causal attention; ``start_B`` is the column where each row's block grid begins (left pads)."""
        column_BS = torch.arange(length, device=device)[None]
        if start_B is not None:
            column_BS = column_BS - start_B.to(device)[:, None]
        block_BS = column_BS.div(block_length, rounding_mode="floor")
        return cls(keep_BS=None if keep_BS is None else keep_BS.bool(), block_BS=block_BS)

    @classmethod
    def packed(cls, segment_BS: Tensor, *, block_length: int | None = None) -> AttentionMask:
        """Return attention inside segments; a negative segment is padding, blocks count from a segment's start."""
        keep_BS = segment_BS >= 0
        if block_length is None:
            return cls(keep_BS=keep_BS, segment_BS=segment_BS)
        offset_BS = segment_offsets(segment_BS)
        return cls(keep_BS=keep_BS, segment_BS=segment_BS, block_BS=offset_BS // block_length)

    @classmethod
    def noisy_clean(cls, segment_BS: Tensor, block_length: int) -> AttentionMask:
        """Return the training mask of ``[noisy copy, clean copy]``, each laid out as ``segment_BS`` says."""
        one = cls.packed(segment_BS, block_length=block_length)
        keep, block, segment, _ = (None if part is None else torch.cat((part, part), dim=-1) for part in one.all)
        noisy_BS = torch.cat((torch.ones_like(segment_BS), torch.zeros_like(segment_BS)), dim=-1).bool()
        return cls(keep, block, segment, noisy_BS)

    @property
    def all(self) -> tuple[Tensor | None, ...]:
        """The four parts in the order of the fields."""
        return self.keep_BS, self.block_BS, self.segment_BS, self.noisy_BS

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The parts that are set."""
        return tuple(part for part in self.all if part is not None)

    @property
    def is_full(self) -> bool:
        """True when everything sees everything."""
        return not self.parts

    @property
    def is_bidirectional(self) -> bool:
        """True when only padding and segments restrict attention, which variable-length kernels can express."""
        return self.block_BS is None and self.noisy_BS is None

    def to(self, device: torch.device | str) -> AttentionMask:
        """Return the mask on ``device``."""
        return AttentionMask(*(None if part is None else part.to(device) for part in self.all))

    def select(self, rows: Tensor) -> AttentionMask:
        """Return the mask of the given rows; parts shared by all rows stay shared."""

        def chosen(part: Tensor | None) -> Tensor | None:
            return part if part is None or part.shape[0] == 1 else part[rows.to(part.device)]

        return AttentionMask(*(chosen(part) for part in self.all))

    def allows(self, row: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Return the rule at broadcastable index tensors: may column ``query`` of ``row`` see column ``key``?

        A padding column inside blocks or segments sees itself, so that no softmax is taken over nothing.
        """
        allowed = torch.ones_like(query == key)
        if self.segment_BS is not None:
            allowed = allowed & (_pick(self.segment_BS, row, query) == _pick(self.segment_BS, row, key))
        if self.block_BS is not None:
            query_block, key_block = _pick(self.block_BS, row, query), _pick(self.block_BS, row, key)
            allowed = allowed & self._blocks(row, query, key, query_block, key_block)
        if self.keep_BS is not None:
            allowed = allowed & _pick(self.keep_BS, row, key)
            if self.block_BS is not None or self.segment_BS is not None:
                allowed = allowed | ((query == key) & ~_pick(self.keep_BS, row, query))
        return allowed

    def _blocks(self, row: Tensor, query: Tensor, key: Tensor, query_block: Tensor, key_block: Tensor) -> Tensor:
        if self.noisy_BS is None:
            return key_block <= query_block
        query_noisy, key_noisy = _pick(self.noisy_BS, row, query), _pick(self.noisy_BS, row, key)
        own = query_noisy & key_noisy & (key_block == query_block)
        earlier = query_noisy & ~key_noisy & (key_block < query_block)
        clean = ~query_noisy & ~key_noisy & (key_block <= query_block)
        return own | earlier | clean

    def dense(self, column_BT: Tensor, length: int) -> Tensor | None:
        """Return the bool mask [B or 1, 1, T, S] for queries at ``column_BT``; None for full attention."""
        if self.is_full:
            return None
        device = column_BT.device
        rows = max(column_BT.shape[0], *(part.shape[0] for part in self.parts))
        row_B111 = torch.arange(rows, device=device)[:, None, None, None]
        key_S = torch.arange(length, device=device)
        return self.allows(row_B111, column_BT[:, None, :, None], key_S)

    def function(self, column_BT: Tensor) -> MaskFunction:
        """Return the mask function over (row, head, query index, key column) for queries at ``column_BT``."""

        def mask_function(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return self.allows(row, _pick(column_BT, row, query), key)

        return mask_function


def segment_offsets(segment_BS: Tensor) -> Tensor:
    """Return each column's distance from the start of its run of equal segment numbers, [B, S]."""
    column_BS = torch.arange(segment_BS.shape[1], device=segment_BS.device).expand_as(segment_BS)
    starts_BS = torch.ones_like(segment_BS, dtype=torch.bool)
    starts_BS[:, 1:] = segment_BS[:, 1:] != segment_BS[:, :-1]
    return column_BS - torch.where(starts_BS, column_BS, 0).cummax(dim=1).values


def _pick(part_BS: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return part_BS[0][column] if part_BS.shape[0] == 1 else part_BS[row, column]
