"""The denoiser: embeddings, layers, final norm and head, split so that logits are paid for only where they are needed.

``body`` maps tokens to hidden states, ``head`` hidden states to float32 logits; calling the network does both. No
logit shift, no sampling and no loss live here. Gradients flow through everything except a cache.

Legend: B rows, T input columns, S key columns, D width, V vocabulary, X any leading shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dare_eval.errors import UsageError
from dare_eval.networks.attention.masks import AttentionMask
from dare_eval.networks.attention.plan import Call, check_backend, plan_attention
from dare_eval.networks.block import Block, Pass
from dare_eval.networks.cache import Columns, KVCache, column_index
from dare_eval.networks.config import NetworkConfig
from dare_eval.networks.layers import Branch, Embedding, Linear, RMSNorm, Rotary, widen
from dare_eval.networks.products import product
from dare_eval.networks.splitting import ColumnSplit

Mask = Tensor | AttentionMask | None


class DiffusionNetwork(Branch):
    """A dLLM of any supported family; ``state_dict()`` has the keys of the original checkpoint."""

    def __init__(self, config: NetworkConfig, *, attn_backend: str = "auto") -> None:
        super().__init__()
        self.config = config
        self.attn_backend = check_backend(attn_backend)
        self.gradient_checkpointing = False
        self.placement: list[torch.device] | None = None
        self.split: ColumnSplit | None = None
        self.is_loaded_in_4bit = False
        names = config.names
        self.place(names.embed, Embedding(config.vocab_size, config.width))
        if config.learned_positions:
            self.place(names.positions or "positions", Embedding(config.learned_positions, config.width))
        self.place(names.layers, nn.ModuleList(Block(config, index) for index in range(config.layers)))
        self.place(names.final_norm, RMSNorm(config.width, config.norm_eps))
        if not config.tied_head:
            self.place(names.head, Linear(config.width, config.vocab_size, bias=False))

    @property
    def layers(self) -> nn.ModuleList:
        """The transformer layers in order."""
        layers = self.at(self.config.names.layers)
        assert isinstance(layers, nn.ModuleList)
        return layers

    @property
    def dtype(self) -> torch.dtype:
        """Type of the embeddings, and so of the hidden states."""
        return self._embedding.dtype

    @property
    def device(self) -> torch.device:
        """Device that input ids are moved to."""
        return self._embedding.device

    @property
    def _embedding(self) -> Tensor:
        weight = self.at(self.config.names.embed).weight
        assert isinstance(weight, Tensor)
        return weight

    def layer_devices(self) -> list[torch.device]:
        """Return the device of each layer."""
        return [next(layer.parameters()).device for layer in self.layers]

    def new_cache(self, rows: int, length: int) -> KVCache:
        """Return an empty cache for ``rows`` canvases of ``length`` columns, each layer on its own device."""
        heads = self.config.kv_heads if self.split is None else self.split.cached_heads(self.config.kv_heads)
        devices = self.layer_devices()
        return KVCache.empty(self.config, rows, length, dtype=self.dtype, devices=devices, kv_heads=heads)

    def body(
        self,
        ids_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        mask: Mask = None,
        cache: KVCache | None = None,
        columns: Columns | None = None,
        wanted_BM: Tensor | None = None,
    ) -> Tensor:
        """Return the hidden states after the final norm, [B, T, D], or [B, M, D] of the wanted columns.

        Args:
            ids_BT: Token ids.
            positions_BT: Absolute positions, [B or 1, T]; the canvas columns of the tokens when None.
            mask: None for the network's own attention (bidirectional, or block-causal on the trained grid over the
                canvas columns), an ``AttentionMask``, a bool tensor broadcastable to [B, 1, T, S] (True = may
                attend), or a float tensor of that shape added to the scores (SDPA only).
            cache: Keys and values of the whole canvas; the pass overwrites ``columns`` and attends to all S columns.
            columns: Canvas columns of the tokens, a slice or an index tensor [B, T]; 0 .. T-1 when None.
            wanted_BM: Which of the T columns to return; the last layer's queries and feed-forward run on these only.

        Raises:
            UsageError: Columns that do not match the tokens, a position beyond a learned position table, or a mask
                that the attention backend cannot express.
        """
        ids_BT = ids_BT.to(self.device)
        rows, width = ids_BT.shape
        length = width if cache is None else cache.length
        column_BT = column_index(columns if cache is not None else None, rows, width, length, ids_BT.device)
        positions_BT = column_BT if positions_BT is None else positions_BT.to(ids_BT.device)
        call = Call(
            mask=self._own_mask(length, ids_BT.device) if mask is None else mask.to(ids_BT.device),
            column_BT=column_BT,
            rows=rows,
            length=length,
            dtype=self.dtype,
            cached=cache is not None,
        )
        if self.split is not None:
            ids_BT, positions_BT = self.split.part(ids_BT), self.split.part(positions_BT)
        shared = Pass(
            rotary=Rotary.at(positions_BT, self.config.rotary_dim, self.config.rope_theta, self.dtype),
            attend=plan_attention(self.attn_backend, call),
            cache=cache,
            columns=columns if columns is not None else slice(0, width),
            split=self.split,
            width=width,
        )
        embedded_BTD = self._embed(ids_BT, positions_BT)
        if self.split is not None:
            whole_BTD = self.split.whole(self._run(embedded_BTD, shared, shared), width)
            return replace(shared, wanted_BM=wanted_BM).pick(whole_BTD)
        last = shared if wanted_BM is None else self._last_pass(shared, call, wanted_BM.to(ids_BT.device))
        return self._run(embedded_BTD, shared, last)

    def _last_pass(self, shared: Pass, call: Call, wanted_BM: Tensor) -> Pass:
        """Return what the last layer needs when its output is wanted at some columns only."""
        mask = call.mask
        if isinstance(mask, Tensor) and mask.shape[-2] > 1:
            index = wanted_BM[:, None, :, None].expand(-1, -1, -1, mask.shape[-1])
            mask = mask.expand(call.rows, -1, -1, -1).gather(-2, index)
        column_BM = call.column_BT.expand(call.rows, -1).gather(-1, wanted_BM)
        # Queries are no longer the keys' columns, as in a cached pass.
        picked = replace(call, mask=mask, column_BT=column_BM, cached=True)
        return replace(
            shared,
            attend=plan_attention(self.attn_backend, picked),
            wanted_BM=wanted_BM,
            query_rotary=shared.rotary.pick(wanted_BM),
        )

    def _own_mask(self, length: int, device: torch.device) -> AttentionMask | None:
        if self.config.block_length is None:
            return None
        return AttentionMask.block_causal(length, self.config.block_length, device=device)

    def _embed(self, ids_BT: Tensor, positions_BT: Tensor) -> Tensor:
        hidden_BTD: Tensor = self.at(self.config.names.embed)(ids_BT)
        rows = self.config.learned_positions
        if not rows:
            return hidden_BTD
        if int(positions_BT.max()) >= rows:
            raise UsageError(
                "the sequence is longer than the learned position table",
                seen=f"position {int(positions_BT.max())}",
                allowed=f"positions 0 .. {rows - 1}",
                remedy="shorten the prompt or gen_length; in training, data.max_length",
            )
        position_BTD: Tensor = self.at(self.config.names.positions or "positions")(positions_BT)
        return hidden_BTD + position_BTD

    def _run(self, hidden_BTD: Tensor, shared: Pass, last: Pass) -> Tensor:
        recompute = self.gradient_checkpointing and torch.is_grad_enabled() and shared.cache is None
        for index, layer in enumerate(self.layers):
            hidden_BTD = self._onto(index, hidden_BTD)
            call = last if index == self.config.layers - 1 else shared
            if recompute:
                hidden_BTD = checkpoint(layer, hidden_BTD, call, use_reentrant=False)
            else:
                hidden_BTD = layer(hidden_BTD, call)
        normed_BTD: Tensor = self.at(self.config.names.final_norm)(self._onto(-1, hidden_BTD))
        return normed_BTD

    def _onto(self, index: int, hidden: Tensor) -> Tensor:
        """Move hidden states to layer ``index``; the norm and the head stand with the last entry of a placement."""
        return hidden if self.placement is None else hidden.to(self.placement[index])

    def head(self, hidden_XD: Tensor) -> Tensor:
        """Return the logits [X, V] of hidden states of any leading shape, in float32 (float64 stays float64)."""
        if self.config.tied_head:
            logits_XV = product(hidden_XD.to(self.device), self._embedding)
        else:
            logits_XV = self.at(self.config.names.head)(self._onto(-1, hidden_XD))
        return widen(logits_XV).contiguous()

    def beside_head(self, run: Callable[..., Tensor], hidden_XD: Tensor, *others: Tensor) -> Tensor:
        """Return ``run(self, hidden_XD, *others)``: one call of a sharded network, however often ``run`` uses the head.

        Sharded networks work together in every call, so all processes must make the same number of them.
        """
        return run(self, hidden_XD, *others)

    def forward(
        self,
        ids_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        mask: Mask = None,
        cache: KVCache | None = None,
        columns: Columns | None = None,
    ) -> Tensor:
        """Return raw logits [B, T, V], float32, no shift applied; arguments as for :meth:`body`."""
        return self.head(self.body(ids_BT, positions_BT=positions_BT, mask=mask, cache=cache, columns=columns))
