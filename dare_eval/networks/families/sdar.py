"""SDAR-1.7B, 4B and 8B: block-causal with blocks of 4, Qwen3-shaped keys, QK-norm.

Source: SDAR, arXiv 2510.06303. ``attention_bias`` covers q, k, v and the output projection, as in Qwen3.
``learned_positions`` (rows of a position table beside RoPE) is a switch of the tiny models of this package.
"""

from __future__ import annotations

from typing import Any

from dare_eval.networks.families.base import Family, Raw, qwen_fields

BLOCK_LENGTH = 4
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TOKEN_IDS = {"mask": 151669, "pad": 151643, "eos": 151643, "eot": 151645}
SPECIAL_TOKENS = {"mask": "<|MASK|>", "pad": "<|endoftext|>", "eos": "<|endoftext|>", "eot": "<|im_end|>"}


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of a dense SDAR config.json."""
    bias = bool(raw.get("attention_bias"))
    return qwen_fields(raw) | {
        "qk_norm": True,
        "qkv_bias": bias,
        "out_bias": bias,
        "block_length": raw.get("block_size", BLOCK_LENGTH),
        "learned_positions": raw.get("learned_positions"),
    }


FAMILY = Family(
    name="sdar",
    model_types=("sdar",),
    architectures=("SDARForCausalLM",),
    parse=parse,
    token_ids=TOKEN_IDS,
    special_tokens=SPECIAL_TOKENS,
    chat_template=CHAT_TEMPLATE,
)
