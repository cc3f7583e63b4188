"""The denoiser part: run the network on some columns of some rows, and turn hidden states into logits.

Holds what differs between networks: block-causal attention, the logit shift, guidance by a second copy of each row
with its prompt masked. The body runs once per pass; the head only on the positions asked for.

Guidance: L = L_u + (w + 1)(L_c - L_u), L_u from the copy without prompt (LLaDA, arXiv 2502.09992, section A.4).

Legend: R rows of this pass (2R under guidance), T columns, S key columns, M predicted columns, N positions of all rows,
D width, V vocabulary.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dare_eval.decoding.canvas import Canvas
from dare_eval.decoding.rows import Rows
from dare_eval.networks.attention import AttentionMask
from dare_eval.networks.cache import KVCache
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.spec import DecodeSpec


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states that predict the positions asked for."""

    seen_RMD: Tensor
    free_RMD: Tensor | None = None
    """Those of the copies without prompt, under guidance."""


class Denoiser:
    """The network as one canvas sees it."""

    def __init__(self, network: DiffusionNetwork, canvas: Canvas, spec: DecodeSpec) -> None:
        self.network, self.canvas, self.spec = network, canvas, spec
        self.guided = spec.cfg_scale > 0
        self.shift = int(network.config.shift)
        self._first_B1 = self._first_columns() if self.shift and canvas.keep_BT is not None else None
        self._prompt_BT = self._prompt_columns() if self.guided else None
        self._plain = isinstance(network, nn.Module) and all(
            type(each) is nn.Parameter for each in network.parameters()
        )

    def _pass_mode(self) -> AbstractContextManager[object]:
        """Return inference mode, which costs less per operation than ``no_grad``, where the weights are plain tensors.

        Shards that are gathered during the pass may be kept for training, which inference tensors cannot serve.
        Rules and watchers run outside, so what they see and keep are ordinary tensors.
        """
        return torch.inference_mode() if self._plain else torch.no_grad()

    def _prompt_columns(self) -> Tensor:
        column_T = torch.arange(self.canvas.width, device=self.canvas.ids_BT.device)
        starts_B1 = torch.tensor(self.canvas.starts, device=column_T.device)[:, None]
        return column_T < starts_B1

    def _first_columns(self) -> Tensor:
        """Return each row's first column behind its padding, [B, 1]."""
        first = [start - length for start, length in zip(self.canvas.starts, self.canvas.lengths, strict=True)]
        return torch.tensor(first, device=self.canvas.ids_BT.device)[:, None]

    def new_cache(self, rows: Rows, length: int) -> KVCache:
        """Return an empty cache for ``rows`` (for both copies under guidance)."""
        return self.network.new_cache(len(rows) * (2 if self.guided else 1), length)

    def select_cache(self, cache: KVCache, where_R: Tensor, rows_before: int) -> KVCache:
        """Return the cache of the rows at ``where_R`` among ``rows_before``."""
        return cache.select(torch.cat((where_R, where_R + rows_before)) if self.guided else where_R)

    def run(
        self, rows: Rows, columns: slice | Tensor, *, predict_RM: Tensor | None = None, cache: KVCache | None = None
    ) -> Hidden:
        """Run ``columns`` (a slice, or an index [T] without a cache) and return what predicts ``predict_RM``.

        ``predict_RM`` are canvas columns; a pass that only stores keys and values has none.
        """
        canvas = self.canvas
        ids_RT = canvas.ids_BT[rows.index_R][:, columns]
        # Without padding all rows count alike, and the rotary tables are made once.
        positions_RT = canvas.positions_BT[rows.index_R if canvas.keep_BT is not None else slice(1)][:, columns]
        keep_RS = None if canvas.keep_BT is None else canvas.keep_BT[rows.index_R]
        if keep_RS is not None:
            keep_RS = keep_RS[:, columns] if cache is None else keep_RS[:, : cache.length]
        wanted_RM = self._predictors(predict_RM, columns, rows)
        if self._prompt_BT is not None:
            prompt_RT = self._prompt_BT[rows.index_R][:, columns]
            ids_RT = torch.cat((ids_RT, ids_RT.masked_fill(prompt_RT, self.network.config.mask_id)))
            positions_RT = positions_RT if keep_RS is None else positions_RT.repeat(2, 1)
            keep_RS = None if keep_RS is None else keep_RS.repeat(2, 1)
            wanted_RM = wanted_RM.repeat(2, 1)
        mask = self._mask(columns, ids_RT.shape[1] if cache is None else cache.length, keep_RS)
        with self._pass_mode():
            hidden_RMD = self.network.body(
                ids_RT,
                positions_BT=positions_RT,
                mask=mask,
                cache=cache,
                columns=columns if cache is not None else None,
                wanted_BM=wanted_RM,
            )
        return Hidden(*hidden_RMD.chunk(2)) if self.guided else Hidden(hidden_RMD)

    def _predictors(self, predict_RM: Tensor | None, columns: slice | Tensor, rows: Rows) -> Tensor:
        """Return which of the pass's columns predict ``predict_RM``: themselves, or the ones before when shifted.

        A row's first column predicts itself: nothing, or only padding, stands before it.
        """
        if predict_RM is None:
            return torch.zeros(len(rows), 1, dtype=torch.long, device=self.canvas.ids_BT.device)
        column_RM = predict_RM - self.shift
        if self._first_B1 is not None:
            column_RM = torch.maximum(column_RM, self._first_B1[rows.index_R])
        place_RM: Tensor = (
            (column_RM - columns.start).clamp_min(0)
            if isinstance(columns, slice)
            else torch.searchsorted(columns, column_RM)
        )
        return place_RM

    def _mask(self, columns: slice | Tensor, length: int, keep_RS: Tensor | None) -> AttentionMask | Tensor:
        if not self.canvas.causal or self._sees_all(columns, length):
            return AttentionMask(keep_BS=keep_RS)
        device = self.canvas.ids_BT.device
        rule = AttentionMask.block_causal(length, self.spec.block_length, keep_BS=keep_RS, device=device)
        return _as_bundled(rule, length) if "additive_block_mask" in self.spec.parity else rule

    def _sees_all(self, columns: slice | Tensor, length: int) -> bool:
        """Return whether the columns are the last block of the key columns, which sees all of them."""
        return (
            isinstance(columns, slice) and columns.stop == length and columns.start >= length - self.spec.block_length
        )

    def logits(self, hidden_ND: Tensor, hidden_free_ND: Tensor | None) -> Tensor:
        """Return float32 logits, [N, V]; ``hidden_free_ND`` are the hidden states of the copies without prompt."""
        logits_NV = self.network.head(hidden_ND)
        if hidden_free_ND is None:
            return logits_NV
        free_NV = self.network.head(hidden_free_ND)
        return free_NV + (self.spec.cfg_scale + 1) * (logits_NV - free_NV)


def _as_bundled(rule: AttentionMask, length: int) -> Tensor:
    """Return the 0/1 mask that LLaDA2.1's bundled code adds to the scores: it favours allowed pairs, hides none."""
    column_1T = torch.arange(length, device=rule.parts[0].device)[None]
    blocks = AttentionMask(block_BS=rule.block_BS).dense(column_1T, length)
    assert blocks is not None
    bias = blocks.float()
    return (
        bias if rule.keep_BS is None else bias.masked_fill(~rule.keep_BS[:, None, None, :], torch.finfo(bias.dtype).min)
    )
