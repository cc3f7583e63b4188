"""Tiny randomly initialised checkpoints of every family, each with its published chat template and special tokens.

The tokenizer is a small byte-level BPE trained on the prompts of the stock data set configs, so that few-shot prompts
are about as long as in the published models; token ids differ from the published ones, texts and roles do not.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import opencompass
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dare_eval.networks import build_network, save_network
from tests.networks import shapes

TEXTS = ("gsm8k", "math", "mbpp", "ARC_c", "humaneval")
VOCABULARY = 3000

# What the published templates render, written down from their description: not the ones of the package.
LLADA = (
    "{% for m in messages %}{% if loop.first %}<|startoftext|>{% endif %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content.strip() + '<|eot_id|>' }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
)
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DREAM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    + CHATML
)
LLADA2 = (
    "<role>SYSTEM</role>{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}"
    "detailed thinking off<|role_end|>"
    "{% for m in messages %}{% if m.role == 'user' %}<role>HUMAN</role>{{ m.content }}<|role_end|>"
    "{% elif m.role == 'assistant' %}<role>ASSISTANT</role>{{ m.content }}<|role_end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<role>ASSISTANT</role>{% endif %}"
)
_QWEN = {"mask": "<|MASK|>", "eos": "<|endoftext|>", "pad": "<|endoftext|>", "eot": "<|im_end|>"}
_ANT = {"mask": "<|mask|>", "eos": "<|endoftext|>", "pad": "<|endoftext|>", "eot": "<|role_end|>"}
_LLADA = {"mask": "<|mdm_mask|>", "eos": "<|endoftext|>", "pad": "<|endoftext|>", "eot": "<|eot_id|>"}
_ROLE = ["<role>", "</role>", "<|startoftext|>"]
FAMILIES: dict[str, dict[str, Any]] = {
    "llada": {
        "template": LLADA,
        "roles": _LLADA | {"bos": "<|startoftext|>"},
        "others": ["<|start_header_id|>", "<|end_header_id|>"],
    },
    "llada_moe": {"template": LLADA2, "roles": _ANT, "others": _ROLE},
    "dream": {
        "template": DREAM,
        "roles": _QWEN | {"mask": "<|mask|>", "bos": "<|beginoftext|>"},
        "others": ["<|im_start|>"],
    },
    "sdar": {"template": CHATML, "roles": _QWEN, "others": ["<|im_start|>"]},
    "sdar_moe": {"template": CHATML, "roles": _QWEN, "others": ["<|im_start|>"]},
    "llada2": {"template": LLADA2, "roles": _ANT, "others": _ROLE},
}


@cache
def _trained() -> str:
    """Return the tokenizer's JSON, trained once per process."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    configs = Path(opencompass.__file__).parent / "configs" / "datasets"
    tokenizer.train([str(path) for name in TEXTS for path in sorted((configs / name).glob("*_gen_*.py"))], trainer)
    return tokenizer.to_str()


def tokenizer_of(family: str) -> PreTrainedTokenizerFast:
    about = FAMILIES[family]
    backend = Tokenizer.from_str(_trained())
    special = list(dict.fromkeys([*about["roles"].values(), *about["others"]]))
    backend.add_special_tokens(special)
    named = {f"{role}_token": text for role, text in about["roles"].items() if role != "eot"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **named)
    tokenizer.chat_template = about["template"]
    return tokenizer


SMALL: dict[str, dict[str, Any]] = {
    "llada": {"d_model": 16, "n_heads": 2, "n_kv_heads": 2, "n_layers": 1},
    "dream": {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1},
    "llada2": {"block_size": 32},
}
"""Sizes that keep hundreds of forwards over a few-shot prompt within seconds of one CPU."""


def make_checkpoint(family: str, folder: Path, *, seed: int = 0, eos_weight: float = 1.0) -> Path:
    """Write a checkpoint of ``family`` into ``folder``; ``eos_weight`` above 1 makes the end token likelier."""
    tokenizer = tokenizer_of(family)
    size = -(-len(tokenizer) // 8) * 8
    ids = {role: tokenizer.convert_tokens_to_ids(text) for role, text in FAMILIES[family]["roles"].items()}
    raw = copy.deepcopy(shapes.ALL[family]) | {"vocab_size": size, "embedding_size": size}
    raw |= {f"{role}_token_id": number for role, number in ids.items() if role != "eot"}
    raw |= {"max_sequence_length": 8192, "max_position_embeddings": 8192, **SMALL.get(family, {})}
    network = build_network(raw, generator=torch.Generator().manual_seed(seed))
    head = network.get_submodule(network.config.names.head)
    with torch.no_grad():
        head.weight[ids["mask"]] = 0.0
        head.weight[ids["eos"]] *= eos_weight
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    save_network(network, folder)
    if "eot" in ids:
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [ids["eos"], ids["eot"]]}))
    return folder
