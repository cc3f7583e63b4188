"""What a family module provides, and the readers of config.json fields that several families share.

A family is a value, not a class to subclass: names it answers to, a function from config.json to the fields of
``NetworkConfig``, its published token ids and what its chat template does. An outside package exposes one under
the entry-point group ``dare.families``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dare_eval.errors import DataError
from dare_eval.networks.names import QWEN_NAMES

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One model family."""

    name: str
    model_types: tuple[str, ...]
    """Values of ``model_type`` in config.json that mean this family; the first is written by new checkpoints."""
    architectures: tuple[str, ...]
    parse: Callable[[Raw], dict[str, Any]]
    """config.json to the keyword arguments of ``NetworkConfig``, token ids and family left out."""
    token_ids: Mapping[str, int] = field(default_factory=dict)
    """Published ids by role (mask, pad, eos, eot, bos), used where no file of the checkpoint names one."""
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    """Text of each special token by role."""
    chat_template: str = ""
    """Jinja template of the published chat models, for checkpoints whose tokenizer has none."""
    template_has_bos: bool = False
    """The rendered chat text already starts with BOS: tokenize it without special tokens."""
    prompt_bos: bool = False
    """A prompt without chat template (base model) needs BOS put in front."""


def require(raw: Raw, key: str, *allowed: Any) -> None:
    """Refuse a config.json whose ``key`` is set to something the network does not compute."""
    if key in raw and raw[key] not in allowed:
        shown = ", ".join(str(value) for value in allowed)
        raise DataError(f"config.json sets {key} to a value that is not supported", seen=raw[key], allowed=shown)


def need(raw: Raw, key: str) -> Any:
    """Return ``raw[key]``; raises ``DataError`` naming the key when it is absent."""
    if raw.get(key) is None:
        raise DataError(f"config.json lacks '{key}'", seen="nothing", remedy=f"add '{key}' to config.json")
    return raw[key]


def rope_theta(raw: Raw, default: float) -> float:
    """Return the rotary base from either spelling (``rope_theta`` or ``rope_parameters``); refuses scaled RoPE."""
    require(raw, "rope_scaling", None)
    parameters = raw.get("rope_parameters") or {}
    require(parameters, "rope_type", "default")
    return float(raw.get("rope_theta") or parameters.get("rope_theta") or default)


def qwen_fields(raw: Raw, *, theta: float = 1e6, eps: float = 1e-6) -> dict[str, Any]:
    """Return the fields that every family with Qwen-shaped config.json keys reads the same way."""
    require(raw, "hidden_act", "silu")
    require(raw, "use_sliding_window", False)
    heads, width = need(raw, "num_attention_heads"), need(raw, "hidden_size")
    head_dim = raw.get("head_dim") or width // heads
    return {
        "names": QWEN_NAMES,
        "vocab_size": need(raw, "vocab_size"),
        "width": width,
        "layers": need(raw, "num_hidden_layers"),
        "heads": heads,
        "kv_heads": raw.get("num_key_value_heads") or heads,
        "head_dim": head_dim,
        "ffn": raw.get("intermediate_size") or raw.get("dense_intermediate_size"),
        "norm_eps": float(raw.get("rms_norm_eps", eps)),
        "rope_theta": rope_theta(raw, theta),
        "rotary_dim": head_dim,
        "context_length": need(raw, "max_position_embeddings"),
        "init_std": float(raw.get("initializer_range", 0.02)),
        "tied_head": bool(raw.get("tie_word_embeddings", False)),
    }
