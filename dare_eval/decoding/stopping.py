"""When a row is finished: an end token after its block, or as soon as everything before it is committed.

Trimming the answer is the recorder's business; this only spares forwards.

Legend: R rows, T columns.
"""

from __future__ import annotations

import torch

from dare_eval.decoding.canvas import Canvas
from dare_eval.decoding.rows import Rows
from dare_eval.errors import UsageError
from dare_eval.networks.config import NetworkConfig
from dare_eval.spec import DecodeSpec


def end_tokens(spec: DecodeSpec, config: NetworkConfig) -> frozenset[int]:
    """Return every id that ends a response: the checkpoint's EOS, end of turn and stop ids, and those of the spec.

    Raises ``UsageError`` for a stop id that no token of this vocabulary has: it would never stop anything.
    """
    strange = [token for token in spec.stop_ids if token >= config.vocab_size]
    if strange:
        raise UsageError(
            "stop_ids lie outside the vocabulary",
            seen=", ".join(map(str, strange)),
            allowed=f"0 .. {config.vocab_size - 1}",
            remedy="take the ids from this checkpoint's tokenizer",
        )
    return frozenset((config.eos_id, *config.stop_ids, *spec.stop_ids))


class Stopper:
    """Tells which rows may leave."""

    def __init__(self, spec: DecodeSpec, canvas: Canvas, ends: frozenset[int]) -> None:
        device = canvas.ids_BT.device
        self.mode, self.canvas = spec.early_stop, canvas
        self.ends = torch.tensor(sorted(ends), device=device)
        self.column_T = torch.arange(canvas.width, device=device)
        self.starts_B1 = torch.tensor(canvas.starts, device=device)[:, None]

    def after_pass(self, rows: Rows) -> list[bool]:
        """Return which rows have an end token with no mask before it (mode ``prefix``)."""
        if self.mode != "prefix":
            return [False] * len(rows)
        width = self.canvas.width
        end_R1 = self.column_T.where(self._end_tokens(rows, width), width).amin(-1, keepdim=True)
        open_R1 = self.column_T.where(self.canvas.open_BT[rows.index_R], width).amin(-1, keepdim=True)
        finished: list[bool] = (end_R1 < open_R1)[:, 0].tolist()
        return finished

    def after_block(self, rows: Rows, stop: int) -> list[bool]:
        """Return which rows have an end token in the response up to column ``stop``."""
        if self.mode == "none":
            return [False] * len(rows)
        finished: list[bool] = self._end_tokens(rows, stop).any(-1).tolist()
        return finished

    def _end_tokens(self, rows: Rows, stop: int) -> torch.Tensor:
        ids_RT = self.canvas.ids_BT[rows.index_R][:, :stop]
        in_response_RT = self.column_T[:stop] >= self.starts_B1[rows.index_R]
        return torch.isin(ids_RT, self.ends) & in_response_RT
