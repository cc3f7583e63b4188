"""SDAR-30B-A3B: SDAR with experts in place of the feed-forward network, softmax routing.

config.json may name layers that stay dense (``mlp_only_layers``) and a stride between sparse ones
(``decoder_sparse_step``), as in Qwen3-MoE.
"""

from __future__ import annotations

from typing import Any

from dare_eval.networks.config import MoEConfig
from dare_eval.networks.families import sdar
from dare_eval.networks.families.base import Family, Raw, count, given, layer_count


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of an SDAR-MoE config.json."""
    dense, stride = raw.get("mlp_only_layers") or [], given(raw, "decoder_sparse_step", 1)
    layers = range(layer_count(raw, "num_hidden_layers"))
    return sdar.parse(raw) | {
        "moe": MoEConfig(
            experts=count(raw, "num_experts"),
            top_k=count(raw, "num_experts_per_tok"),
            expert_ffn=count(raw, "moe_intermediate_size"),
            routing="softmax",
            renormalise=bool(raw.get("norm_topk_prob", False)),
            sparse_layers=tuple(i not in dense and (i + 1) % stride == 0 for i in layers),
        )
    }


FAMILY = Family(
    name="sdar_moe",
    model_types=("sdar_moe",),
    architectures=("SDARMoeForCausalLM",),
    parse=parse,
    token_ids=sdar.TOKEN_IDS,
    special_tokens=sdar.SPECIAL_TOKENS,
    chat_template=sdar.CHAT_TEMPLATE,
)
