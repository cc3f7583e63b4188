"""Keys and values of a canvas, overwritten column by column.

Keys are stored after rotation: positions are absolute, so a column keeps its key however often its neighbours are
refreshed. Which columns a pass overwrites is the decoder's choice; prefix, dual and block-commit caches are three
such choices. The buffers are written in place: caches belong to passes without gradients.

Legend: B rows, S canvas columns, T columns of this pass, KV key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_eval.networks.config import NetworkConfig

Columns = slice | Tensor
"""The canvas columns of a pass: one slice for all rows, or an index tensor [B, T]."""


class KVCache:
    """Per layer a key and a value buffer of shape [B, S, KV, d]."""

    def __init__(self, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        self.keys, self.values = list(keys), list(values)

    @classmethod
    def empty(
        cls,
        config: NetworkConfig,
        rows: int,
        length: int,
        *,
        dtype: torch.dtype = torch.float32,
        devices: torch.device | str | Sequence[torch.device] = "cpu",
        kv_heads: int | None = None,
    ) -> KVCache:
        """Return a zeroed cache; ``devices`` is one device or one per layer. Prefer ``network.new_cache``.

        ``kv_heads`` is the number of heads held here, all of the network's when None.
        """
        places = [devices] * config.layers if isinstance(devices, str | torch.device) else list(devices)
        shape = (rows, length, kv_heads or config.kv_heads, config.head_dim)
        keys, values = ([_zeros(shape, dtype, torch.device(place)) for place in places] for _ in range(2))
        return cls(keys, values)

    @property
    def rows(self) -> int:
        """Number of rows B."""
        return self.keys[0].shape[0]

    @property
    def length(self) -> int:
        """Number of canvas columns S."""
        return self.keys[0].shape[1]

    def write(self, layer: int, key_BTKVd: Tensor, value_BTKVd: Tensor, columns: Columns) -> tuple[Tensor, Tensor]:
        """Overwrite ``columns`` of one layer and return its whole key and value buffers, [B, S, KV, d]."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(columns, slice):
            keys[:, columns], values[:, columns] = key_BTKVd, value_BTKVd
        else:
            columns = columns.to(keys.device)
            row_B1 = torch.arange(keys.shape[0], device=keys.device)[:, None]
            keys[row_B1, columns], values[row_B1, columns] = key_BTKVd, value_BTKVd
        return keys, values

    def select(self, rows: Tensor) -> KVCache:
        """Return a cache of the given rows (index or bool tensor [B]); rows that left free their memory."""
        return KVCache(
            [keys[rows.to(keys.device)] for keys in self.keys],
            [values[rows.to(values.device)] for values in self.values],
        )

    def first(self, length: int) -> KVCache:
        """Return a view of the first ``length`` columns; writes go through to this cache."""
        return KVCache([keys[:, :length] for keys in self.keys], [values[:, :length] for values in self.values])


def _zeros(shape: tuple[int, int, int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return zeros of ``shape`` [B, S, KV, d].

    On the CPU the columns of a head lie behind each other, which makes attention to them up to 1.3 times as fast;
    flash-attn on a GPU reads the columns of all heads in one run.
    """
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    rows, length, heads, size = shape
    return torch.zeros(rows, heads, length, size, dtype=dtype, device=device).transpose(1, 2)


def column_index(columns: Columns | None, rows: int, width: int, length: int, device: torch.device) -> Tensor:
    """Return the canvas column of each input token, [1 or B, T]; raises ``UsageError`` when they do not fit."""
    if columns is None:
        columns = slice(0, width)
    if isinstance(columns, slice):
        index_BT = torch.arange(*columns.indices(length), device=device)[None]
    else:
        index_BT = columns.to(device)
    if index_BT.shape[-1] != width or index_BT.shape[0] not in (1, rows):
        raise UsageError(
            "the columns of a cached pass do not match its tokens",
            seen=f"columns {tuple(index_BT.shape)}, tokens ({rows}, {width}), canvas {length}",
            allowed="one canvas column per token",
        )
    return index_BT
