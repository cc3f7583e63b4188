"""One transformer layer: attention and feed-forward network, with the switches of every family.

The projections sit at the paths the family's checkpoint gives them; what they compute is the same for all:
pre-norm attention (optional biases, QK-norm, fused q/k/v, partial rotation, cache) and a SwiGLU network or experts.

Legend: B rows, T input columns, D width, H heads, KV key/value heads, d head size, N = B*T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dare_eval.networks import moe
from dare_eval.networks.attention.plan import Attend
from dare_eval.networks.cache import Columns, KVCache
from dare_eval.networks.config import NetworkConfig
from dare_eval.networks.layers import Branch, Linear, RMSNorm, Rotary, gated, pick_columns
from dare_eval.networks.splitting import ColumnSplit


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one forward pass share."""

    rotary: Rotary
    attend: Attend
    cache: KVCache | None
    columns: Columns
    wanted_BM: Tensor | None = None
    """Input columns whose output is wanted; None for all. Set for the last layer only."""
    query_rotary: Rotary | None = None
    """Tables of the wanted columns."""
    split: ColumnSplit | None = None
    """Set when the columns of the pass are shared with other processes."""
    width: int = 0
    """All columns of the pass, when they are shared."""

    def pick(self, states_BTX: Tensor) -> Tensor:
        """Return the states of the wanted columns, [B, M, ...]."""
        if self.wanted_BM is None:
            return states_BTX
        return pick_columns(states_BTX, self.wanted_BM.to(states_BTX.device))


class Block(Branch):
    """Layer ``index`` of a network."""

    def __init__(self, config: NetworkConfig, index: int) -> None:
        super().__init__()
        self.config, self.index = config, index
        names = config.names
        self.place(names.norm1, RMSNorm(config.width, config.norm_eps))
        self.place(names.norm2, RMSNorm(config.width, config.norm_eps))
        self._place_attention()
        self.sparse = config.moe is not None and config.moe.sparse_layers[index]
        self.watch: moe.Watch | None = None
        if self.sparse:
            self._place_experts()
        else:
            self._place_gated(names.gate, names.up, names.down, config.ffn)

    def _place_attention(self) -> None:
        config, names = self.config, self.config.names
        q_size, kv_size = config.heads * config.head_dim, config.kv_heads * config.head_dim
        if config.fused_qkv:
            fused = Linear(config.width, q_size + 2 * kv_size, bias=config.qkv_bias)
            self.place(names.qkv or names.q, fused)
        else:
            for path, size in ((names.q, q_size), (names.k, kv_size), (names.v, kv_size)):
                self.place(path, Linear(config.width, size, bias=config.qkv_bias))
        if config.qk_norm:
            self.place(names.q_norm, RMSNorm(config.head_dim, config.norm_eps))
            self.place(names.k_norm, RMSNorm(config.head_dim, config.norm_eps))
        self.place(names.out, Linear(q_size, config.width, bias=config.out_bias))

    def _place_gated(self, gate: str, up: str, down: str, ffn: int) -> None:
        width = self.config.width
        for path, sizes in ((gate, (width, ffn)), (up, (width, ffn)), (down, (ffn, width))):
            self.place(path, Linear(*sizes, bias=False))

    def _place_experts(self) -> None:
        switches, names = self.config.moe, self.config.names
        assert switches is not None  # sparse layers exist only with experts
        self.place(names.router, moe.Router(self.config.width, switches.experts, bias=False))
        if switches.expert_bias:
            parent, _, leaf = names.expert_bias.rpartition(".")
            self.at(parent).register_buffer(leaf, torch.zeros(switches.experts))
        self.place(names.experts, nn.ModuleList(Branch() for _ in range(switches.experts)))
        for index in range(switches.experts):
            self._place_gated(*_expert_paths(f"{names.experts}.{index}"), switches.expert_ffn)
        if switches.shared_ffn:
            self._place_gated(*_expert_paths(names.shared), switches.shared_ffn)

    def forward(self, hidden_BTD: Tensor, call: Pass) -> Tensor:
        """Return the layer's output, [B, T, D]; of the wanted columns only where the call names some."""
        names = self.config.names
        mixed_ND = self._attention(self.at(names.norm1)(hidden_BTD), call)
        hidden_BTD = call.pick(hidden_BTD)
        # The products run on tokens: two axes cost fewer operations than three.
        hidden_ND = hidden_BTD.flatten(0, 1) + mixed_ND
        out_ND = self._feed_forward(self.at(names.norm2)(hidden_ND))
        # Added in three axes: wrappers that hook the output (FSDP2) must not be handed a view.
        return hidden_ND.view_as(hidden_BTD) + out_ND.view_as(hidden_BTD)

    def _attention(self, hidden_BTD: Tensor, call: Pass) -> Tensor:
        query_BTHd, key_BTKVd, value_BTKVd = self._project(hidden_BTD, call)
        query_BTHd, key_BTKVd = self._rotate(query_BTHd, key_BTKVd, call)
        if call.split is not None:
            states = (query_BTHd, key_BTKVd, value_BTKVd)
            query_BTHd, key_BTKVd, value_BTKVd = (call.split.to_heads(each, call.width) for each in states)
        if call.cache is not None:
            key_BTKVd, value_BTKVd = call.cache.write(self.index, key_BTKVd, value_BTKVd, call.columns)
        out_BTHd = call.attend(query_BTHd, key_BTKVd, value_BTKVd)
        if call.split is not None:
            out_BTHd = call.split.to_columns(out_BTHd)
        result_ND: Tensor = self.at(self.config.names.out)(out_BTHd.flatten(0, 1).flatten(1))
        return result_ND

    def _project(self, hidden_BTD: Tensor, call: Pass) -> tuple[Tensor, Tensor, Tensor]:
        config, names = self.config, self.config.names
        heads = (config.heads, config.kv_heads, config.kv_heads)
        hidden_ND = hidden_BTD.flatten(0, 1)
        if config.fused_qkv:
            sizes = [count * config.head_dim for count in heads]
            query, key, value = self.at(names.qkv or names.q)(hidden_ND).split(sizes, dim=-1)
            if call.wanted_BM is not None:
                query = call.pick(query.unflatten(0, hidden_BTD.shape[:2])).flatten(0, 1)
            parts = [query, key, value]
        else:
            query_ND = hidden_ND if call.wanted_BM is None else call.pick(hidden_BTD).flatten(0, 1)
            inputs = (query_ND, hidden_ND, hidden_ND)
            parts = [self.at(path)(states) for path, states in zip((names.q, names.k, names.v), inputs, strict=True)]
        if config.qk_norm or call.cache is None:
            # A cache is written in its own order; norms and attention round by the order that they read.
            parts = [part.contiguous() for part in parts]
        columns = hidden_BTD.shape[:2]
        shapes = (columns if call.wanted_BM is None else call.wanted_BM.shape, columns, columns)
        query, key, value = (
            part.view(*shape, count, config.head_dim) for part, shape, count in zip(parts, shapes, heads, strict=True)
        )
        if config.qk_norm:
            query, key = self.at(names.q_norm)(query), self.at(names.k_norm)(key)
        return query, key, value

    def _rotate(self, query_BTHd: Tensor, key_BTKVd: Tensor, call: Pass) -> tuple[Tensor, Tensor]:
        rotary = call.rotary.to(query_BTHd.device)
        if call.query_rotary is not None:
            return call.query_rotary.to(query_BTHd.device)(query_BTHd), rotary(key_BTKVd)
        # One rotation for both, which also brings products in column order back into row order.
        both = rotary(torch.cat((query_BTHd, key_BTKVd), dim=2))
        heads = query_BTHd.shape[2]
        return both[:, :, :heads], both[:, :, heads:]

    def _feed_forward(self, hidden_ND: Tensor) -> Tensor:
        names, switches = self.config.names, self.config.moe
        if not self.sparse or switches is None:
            return gated(hidden_ND, self.at(names.gate), self.at(names.up), self.at(names.down))
        router = self.at(names.router)
        assert isinstance(router, moe.Router)
        bias_E = self.get_buffer(names.expert_bias) if switches.expert_bias else None
        scores_NE = router.scores(hidden_ND)
        routed = moe.choose(scores_NE, bias_E, switches)
        if self.watch is not None:
            routed = self.watch(self.index, scores_NE, routed)
        experts = [partial(_run_gated, expert) for expert in self.at(names.experts).children()]
        out_ND = moe.mix(hidden_ND, routed, experts)
        if switches.shared_ffn:
            out_ND = out_ND + _run_gated(self.at(names.shared), hidden_ND)
        return out_ND


EXPERT_LEAVES = ("gate_proj", "up_proj", "down_proj")


def _expert_paths(prefix: str) -> tuple[str, str, str]:
    gate, up, down = (f"{prefix}.{leaf}" for leaf in EXPERT_LEAVES)
    return gate, up, down


def _run_gated(expert: nn.Module, hidden_ND: Tensor) -> Tensor:
    gate, up, down = (expert.get_submodule(leaf) for leaf in EXPERT_LEAVES)
    return gated(hidden_ND, gate, up, down)
