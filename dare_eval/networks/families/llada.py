"""LLaDA-8B (Base, Instruct), LLaDA-1.5 and the tiny models of this package: bidirectional, OLMo-shaped keys.

Differences from the common network: key names, sizes under their OLMo names, the switches ``learned_positions``
(rows of a position table beside RoPE) and ``block_size`` (trains and decodes block-causally) of the tiny models.
Source: LLaDA, arXiv 2502.09992.
"""

from __future__ import annotations

from typing import Any

from dare_eval.networks.families.base import Family, Raw, count, given, layer_count, number, require, rope_theta
from dare_eval.networks.names import LLADA_NAMES

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
)


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of a LLaDA config.json."""
    for key, allowed in (
        ("activation_type", ("silu",)),
        ("block_type", ("llama",)),
        ("layer_norm_type", ("rms",)),
        ("layer_norm_with_affine", (True,)),
        ("rope", (True,)),
        ("alibi", (False,)),
        ("include_bias", (False,)),
        ("bias_for_layer_norm", (False, None)),
        ("attention_layer_norm", (False,)),
        ("input_emb_norm", (False,)),
        ("scale_logits", (False,)),
    ):
        require(raw, key, *allowed)
    width, heads = count(raw, "d_model"), count(raw, "n_heads")
    shared = 1 if raw.get("multi_query_attention") else heads
    stated_ffn = raw.get("mlp_hidden_size")
    return {
        "names": LLADA_NAMES,
        "vocab_size": count(raw, "vocab_size" if raw.get("embedding_size") is None else "embedding_size"),
        "width": width,
        "layers": layer_count(raw, "n_layers"),
        "heads": heads,
        "kv_heads": given(raw, "n_kv_heads", shared),
        "head_dim": width // heads,
        "ffn": raw.get("mlp_ratio", 4) * width if stated_ffn is None else stated_ffn,
        "norm_eps": number(raw, "rms_norm_eps", 1e-5),
        "rope_theta": rope_theta(raw, 10000.0),
        "rotary_dim": width // heads,
        "context_length": given(raw, "max_sequence_length", 4096),
        "init_std": number(raw, "init_std", 0.02),
        "learned_positions": raw.get("learned_positions"),
        "qkv_bias": bool(raw.get("include_qkv_bias")),
        "tied_head": bool(raw.get("weight_tying", False)),
        "block_length": raw.get("block_size"),
    }


FAMILY = Family(
    name="llada",
    model_types=("llada",),
    architectures=("LLaDAModelLM",),
    parse=parse,
    token_ids={"mask": 126336, "pad": 126081, "eos": 126081, "eot": 126348, "bos": 126080},
    special_tokens={
        "mask": "<|mdm_mask|>",
        "pad": "<|endoftext|>",
        "eos": "<|endoftext|>",
        "eot": "<|eot_id|>",
        "bos": "<|startoftext|>",
    },
    chat_template=CHAT_TEMPLATE,
    template_has_bos=True,
)
