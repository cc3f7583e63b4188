"""What a network needs to know of processes that share the columns of its rows; none of them is made here.

A network with a ``split`` embeds, projects and feeds forward its own columns only, attends over all columns with its
own heads, and returns the hidden states of all columns. ``dare_train.engine.sequence`` is the implementation.

Legend: B rows, T columns, t own columns, G processes, H heads, d head size, X any trailing shape.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class ColumnSplit(Protocol):
    """The exchange of columns and heads between the processes of one group."""

    def part(self, states_BTX: Tensor) -> Tensor:
        """Return this process's columns, [B, t, ...]; what stands behind the last column is filled up."""
        ...

    def whole(self, states_BtX: Tensor, length: int) -> Tensor:
        """Return the columns of all processes, [B, length, ...]."""
        ...

    def to_heads(self, states_BtHd: Tensor, length: int) -> Tensor:
        """Return all columns of this process's heads, [B, length, H / G, d]."""
        ...

    def to_columns(self, states_BThd: Tensor) -> Tensor:
        """Return all heads of this process's columns, [B, t, H, d]."""
        ...

    def cached_heads(self, heads: int) -> int:
        """Return how many of a network's key/value heads one process holds."""
        ...
