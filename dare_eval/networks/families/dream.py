"""Dream-v0-7B (Base, Instruct): bidirectional, Qwen2-shaped keys, biases on q/k/v, logits shifted by one.

Source: Dream 7B, arXiv 2508.15487. The tokenizer's BOS (151665) differs from config.json's bos_token_id (151643);
base-model prompts take the tokenizer's.
"""

from __future__ import annotations

from typing import Any

from dare_eval.networks.families.base import Family, Raw, qwen_fields

CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def parse(raw: Raw) -> dict[str, Any]:
    """Return the network fields of a Dream config.json."""
    return qwen_fields(raw) | {"qkv_bias": True, "shift": True}


FAMILY = Family(
    name="dream",
    model_types=("Dream", "dream"),
    architectures=("DreamModel",),
    parse=parse,
    token_ids={"mask": 151666, "pad": 151643, "eos": 151643, "eot": 151645, "bos": 151665},
    special_tokens={
        "mask": "<|mask|>",
        "pad": "<|endoftext|>",
        "eos": "<|endoftext|>",
        "eot": "<|im_end|>",
        "bos": "<|beginoftext|>",
    },
    chat_template=CHAT_TEMPLATE,
    prompt_bos=True,
)
