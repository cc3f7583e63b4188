"""LLaDA2.0-mini, LLaDA2.1-mini and the flash sizes: block-causal with blocks of 32.

Differences: fused q/k/v, QK-norm always on, rotation of the first half of each head, first layers dense, then
experts with grouped sigmoid routing plus a shared expert. 2.0 and 2.1 differ in decoding only.
Source: LLaDA2.0, arXiv 2512.15745. config.json's ``use_qk_norm``, ``norm_head`` and ``sliding_window`` are not
consulted, nor is ``moe_router_enable_expert_bias`` (the bias is always there), as in the published code.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dare_eval.networks.config import MoEConfig
from dare_eval.networks.families.base import Family, Raw, count, given, number, qwen_fields, require, rotary_dim
from dare_eval.networks.names import QWEN_NAMES

BLOCK_LENGTH = 32
TOP_K = "num_experts_per_tok"
CHAT_TEMPLATE = (
    "{{ '<role>SYSTEM</role>' }}"
    "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + '\n' }}{% endif %}"
    "{{ 'detailed thinking off<|role_end|>' }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '<role>HUMAN</role>' + message['content'] + '<|role_end|>' }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ '<role>ASSISTANT</role>' + message['content'] + '<|role_end|>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<role>ASSISTANT</role>' }}{% endif %}"
)
TOKEN_IDS = {"mask": 156895, "pad": 156892, "eos": 156892}
SPECIAL_TOKENS = {
    "mask": "<|mask|>",
    "pad": "<|endoftext|>",
    "eos": "<|endoftext|>",
    "eot": "<|role_end|>",
    "bos": "<|startoftext|>",
}
NAMES = dataclasses.replace(
    QWEN_NAMES,
    embed="model.word_embeddings",
    qkv="attention.query_key_value",
    q_norm="attention.query_layernorm",
    k_norm="attention.key_layernorm",
    out="attention.dense",
)


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of a LLaDA2 config.json."""
    require(raw, "score_function", "sigmoid")
    fields = qwen_fields(raw, theta=600000.0)
    layers, first = fields["layers"], given(raw, "first_k_dense_replace", 0)
    width, shared, top_k = count(raw, "moe_intermediate_size"), given(raw, "num_shared_experts", 0), count(raw, TOP_K)
    return fields | {
        "names": NAMES,
        "rotary_dim": rotary_dim(raw, fields["head_dim"]),
        "qk_norm": True,
        "fused_qkv": True,
        "qkv_bias": bool(raw.get("use_qkv_bias")),
        "out_bias": bool(raw.get("use_bias")),
        "block_length": raw.get("block_size", BLOCK_LENGTH),
        "moe": MoEConfig(
            experts=count(raw, "num_experts"),
            top_k=top_k,
            expert_ffn=width,
            routing="grouped_sigmoid",
            renormalise=top_k > 1,
            sparse_layers=tuple(i >= first for i in range(layers)),
            expert_bias=True,
            shared_ffn=width * shared or None,
            groups=given(raw, "n_group", 1),
            top_groups=given(raw, "topk_group", 1),
            scale=number(raw, "routed_scaling_factor", 1.0),
        ),
    }


FAMILY = Family(
    name="llada2",
    model_types=("llada2_moe",),
    architectures=("LLaDA2MoeModelLM",),
    parse=parse,
    token_ids=TOKEN_IDS,
    special_tokens=SPECIAL_TOKENS,
    chat_template=CHAT_TEMPLATE,
)
