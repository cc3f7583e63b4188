"""LLaDA-MoE-7B-A1B (Base, Instruct): bidirectional, Qwen-shaped keys, softmax routing never renormalised.

The routing bias, where enabled, is added to the probabilities and also changes the weights; a shared expert, where
configured, stands beside the experts (``shared_expert``, a sibling of ``mlp``) and is added unweighted.
Source: LLaDA-MoE, arXiv 2509.24389.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dare_eval.errors import DataError
from dare_eval.networks.config import MoEConfig
from dare_eval.networks.families.base import Family, Raw, count, given, qwen_fields, require, rotary_dim
from dare_eval.networks.families.llada2 import CHAT_TEMPLATE, SPECIAL_TOKENS, TOKEN_IDS
from dare_eval.networks.names import QWEN_NAMES

NAMES = dataclasses.replace(QWEN_NAMES, expert_bias="mlp.expert_bias", shared="shared_expert")


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of a LLaDA-MoE config.json."""
    require(raw, "moe_router_score_function", "softmax")
    fields = qwen_fields(raw, theta=50000.0, eps=1e-5)
    layers, bias = fields["layers"], bool(raw.get("attention_bias"))
    expert_bias = bool(raw.get("moe_router_enable_expert_bias"))
    return fields | {
        "names": NAMES,
        "rotary_dim": rotary_dim(raw, fields["head_dim"]),
        "qk_norm": bool(raw.get("qk_layernorm")),
        "qkv_bias": bias,
        "out_bias": bias,
        "moe": MoEConfig(
            experts=count(raw, "num_experts"),
            top_k=count(raw, "num_experts_per_tok"),
            expert_ffn=count(raw, "expert_intermediate_size"),
            routing="softmax",
            renormalise=False,
            sparse_layers=_sparse_layers(raw, layers),
            expert_bias=expert_bias,
            biased_weights=True,
            shared_ffn=raw.get("shared_expert_intermediate_size"),
        ),
    }


def _sparse_layers(raw: Raw, layers: int) -> tuple[bool, ...]:
    stated = given(raw, "moe_layer_freq", [1] * layers)
    if not isinstance(stated, list | tuple) or len(stated) != layers or not all(flag in (0, 1) for flag in stated):
        raise DataError(
            "config.json does not say for each layer whether it has experts",
            seen=f"moe_layer_freq = {stated!r}, num_hidden_layers = {layers}",
            allowed=f"{layers} entries, 0 for a dense layer and 1 for experts",
            remedy="correct 'moe_layer_freq' in config.json",
        )
    return tuple(bool(flag) for flag in stated)


FAMILY = Family(
    name="llada_moe",
    model_types=("lladamoe", "llada_moe"),
    architectures=("LLaDAMoEModelLM", "LLaDAMoEModel"),
    parse=parse,
    token_ids=TOKEN_IDS,
    special_tokens=SPECIAL_TOKENS,
    chat_template=CHAT_TEMPLATE,
)
