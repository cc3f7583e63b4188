"""Where each part of a network lives in a checkpoint: dotted paths, one record per naming scheme.

The module tree is built with these paths, so ``state_dict()`` has the original keys and adapters find the original
leaf names (``q_proj``, ``ff_proj``, ``query_key_value``); there is no key conversion anywhere. Two schemes cover
LLaDA and the Qwen-shaped families; LLaDA2 replaces the attention names of the latter.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyNames:
    """Dotted paths: the first five from the root, the others from a layer."""

    embed: str
    positions: str | None = None
    layers: str
    final_norm: str
    head: str
    norm1: str = "input_layernorm"
    norm2: str = "post_attention_layernorm"
    q: str = "self_attn.q_proj"
    k: str = "self_attn.k_proj"
    v: str = "self_attn.v_proj"
    qkv: str | None = None
    q_norm: str = "self_attn.q_norm"
    k_norm: str = "self_attn.k_norm"
    out: str = "self_attn.o_proj"
    gate: str = "mlp.gate_proj"
    up: str = "mlp.up_proj"
    down: str = "mlp.down_proj"
    router: str = "mlp.gate"
    expert_bias: str = "mlp.gate.expert_bias"
    experts: str = "mlp.experts"
    shared: str = "mlp.shared_experts"


LLADA_NAMES = KeyNames(
    embed="model.transformer.wte",
    positions="model.transformer.wpe",
    layers="model.transformer.blocks",
    final_norm="model.transformer.ln_f",
    head="model.transformer.ff_out",
    norm1="attn_norm",
    norm2="ff_norm",
    q="q_proj",
    k="k_proj",
    v="v_proj",
    out="attn_out",
    gate="ff_proj",
    up="up_proj",
    down="ff_out",
)

QWEN_NAMES = KeyNames(embed="model.embed_tokens", layers="model.layers", final_norm="model.norm", head="lm_head")
