"""Small config.json contents of every family, and random variations of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

LLADA: dict[str, Any] = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "activation_type": "silu",
    "block_type": "llama",
    "layer_norm_type": "rms",
    "rope": True,
    "d_model": 32,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "mlp_hidden_size": 48,
    "vocab_size": 40,
    "embedding_size": 40,
    "max_sequence_length": 64,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5,
    "init_std": 0.3,
    "weight_tying": False,
    "mask_token_id": 39,
    "eos_token_id": 38,
    "pad_token_id": 38,
}
QWEN: dict[str, Any] = {
    "hidden_act": "silu",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "rope_theta": 1e6,
    "rope_scaling": None,
    "rms_norm_eps": 1e-6,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
    "mask_token_id": 39,
    "eos_token_id": 38,
    "pad_token_id": 38,
}
EXPERTS: dict[str, Any] = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
DREAM = QWEN | {"model_type": "Dream", "architectures": ["DreamModel"]}
SDAR = QWEN | {"model_type": "sdar", "architectures": ["SDARForCausalLM"], "head_dim": 12, "block_size": 4}
SDAR_MOE = SDAR | EXPERTS | {"model_type": "sdar_moe", "architectures": ["SDARMoeForCausalLM"], "norm_topk_prob": True}
LLADA_MOE = QWEN | {
    "model_type": "lladamoe",
    "architectures": ["LLaDAMoEModelLM"],
    "num_key_value_heads": 4,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "expert_intermediate_size": 16,
    "dense_intermediate_size": 48,
    "qk_layernorm": True,
    "moe_layer_freq": [0, 1],
    "moe_router_score_function": "softmax",
}
LLADA2 = QWEN | EXPERTS | {
    "model_type": "llada2_moe",
    "architectures": ["LLaDA2MoeModelLM"],
    "num_experts": 8,
    "head_dim": 8,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "num_shared_experts": 1,
    "partial_rotary_factor": 0.5,
    "routed_scaling_factor": 2.5,
    "score_function": "sigmoid",
    "block_size": 4,
}  # fmt: skip
ALL = {
    "llada": LLADA,
    "dream": DREAM,
    "sdar": SDAR,
    "sdar_moe": SDAR_MOE,
    "llada_moe": LLADA_MOE,
    "llada2": LLADA2,
}


@st.composite
def variations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a config.json with other shapes than the published ones: GQA, RoPE base, widths, experts, tied heads."""
    family = draw(st.sampled_from(sorted(ALL)))
    raw = dict(ALL[family])
    heads, groups = draw(st.sampled_from([(4, 4), (4, 2), (4, 1), (6, 3), (2, 1)]))
    head_dim = draw(st.sampled_from([4, 8, 12]))
    theta = draw(st.sampled_from([1e4, 6e5, 1e6]))
    layers, tied = draw(st.integers(1, 3)), draw(st.booleans())
    if family == "llada":
        raw |= {"n_heads": heads, "n_kv_heads": groups, "d_model": heads * head_dim, "n_layers": layers}
        raw |= {
            "weight_tying": tied,
            "mlp_hidden_size": draw(st.integers(8, 60)),
            "include_qkv_bias": draw(st.booleans()),
        }
        raw |= {"learned_positions": draw(st.sampled_from([None, 24])), "block_size": draw(st.sampled_from([None, 3]))}
        return raw | {"rope_theta": theta}
    raw |= {
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "num_hidden_layers": layers,
        "rope_theta": theta,
    }
    raw |= {"hidden_size": heads * head_dim, "intermediate_size": draw(st.integers(8, 60)), "tie_word_embeddings": tied}
    if family != "dream":
        raw |= {"head_dim": draw(st.sampled_from([head_dim, 8]))}
    if "num_experts" in raw:
        raw |= {"num_experts": 4 * draw(st.integers(1, 3)), "num_experts_per_tok": draw(st.integers(1, 3))}
    if family == "sdar_moe":
        raw |= {"norm_topk_prob": draw(st.booleans()), "mlp_only_layers": draw(st.sampled_from([[], [0]]))}
    if family == "llada_moe":
        raw |= {"moe_layer_freq": [draw(st.integers(0, 1)) for _ in range(layers)]}
        raw |= {"moe_router_enable_expert_bias": draw(st.booleans()), "qk_layernorm": draw(st.booleans())}
        raw |= {
            "shared_expert_intermediate_size": draw(st.sampled_from([None, 8])),
            "attention_bias": draw(st.booleans()),
        }
    if family == "llada2":
        groups = draw(st.sampled_from([1, 2, 4]))
        open_groups = draw(st.integers(1, groups))
        raw |= {"n_group": groups, "topk_group": open_groups, "num_experts": 8}
        raw |= {"num_experts_per_tok": draw(st.integers(1, 8 // groups * open_groups))}
        raw |= {
            "partial_rotary_factor": draw(st.sampled_from([0.5, 1.0])),
            "num_shared_experts": draw(st.integers(0, 2)),
        }
        raw |= {"use_qkv_bias": draw(st.booleans())}
    return raw
