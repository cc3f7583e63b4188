"""What a family module provides, and the readers of config.json fields that several families share.

A family is a value, not a class to subclass: names it answers to, a function from config.json to the fields of
``NetworkConfig``, its published token ids and what its chat template does. An outside package exposes one under
the entry-point group ``dare.families``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dare_eval.errors import DataError, UsageError
from dare_eval.networks.names import QWEN_NAMES
from dare_eval.spec.checks import is_count

Raw = Mapping[str, Any]
MOST_LAYERS = 10_000


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

    def __post_init__(self) -> None:
        """Refuse a family that could not be found, or would be found for names that only contain one of its own."""
        for key in ("model_types", "architectures"):
            names = getattr(self, key)
            if not isinstance(names, tuple) or not all(isinstance(name, str) and name for name in names):
                raise UsageError(f"{key} of family '{self.name}' is no tuple of names", seen=repr(names))
        if not callable(self.parse):
            raise UsageError(f"parse of family '{self.name}' is no function", seen=repr(self.parse))


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


def given(raw: Raw, key: str, default: Any) -> Any:
    """Return ``raw[key]``, ``default`` when it is absent or null; 0 is a value like any other."""
    value = raw.get(key)
    return default if value is None else value


def count(raw: Raw, key: str) -> int:
    """Return the size ``raw[key]``; raises ``DataError`` naming the key for what is no integer above 0."""
    value = need(raw, key)
    if not is_count(value):
        raise _wrong(key, value, "an integer above 0")
    return int(value)


def layer_count(raw: Raw, key: str) -> int:
    """Return the number of layers, as :func:`count`; families list their layers, so it must be one that exists."""
    found = count(raw, key)
    if found > MOST_LAYERS:
        raise _wrong(key, found, f"at most {MOST_LAYERS:,}")
    return found


def number(raw: Raw, key: str, default: float) -> float:
    """Return ``raw[key]`` as a float; raises ``DataError`` naming the key for what is no finite number."""
    value = given(raw, key, default)
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(key, value, "a finite number") from error
    if not math.isfinite(found):
        raise _wrong(key, value, "a finite number")
    return found


def _wrong(key: str, value: Any, allowed: str) -> DataError:
    return DataError(
        f"config.json holds a value of the wrong type or range for '{key}'",
        seen=f"{key} = {value!r}"[:300],
        allowed=allowed,
        remedy=f"correct '{key}' in config.json",
    )


def rope_parameters(raw: Raw) -> Raw:
    """Return the mapping that newer config.json files keep the rotary settings in, empty when there is none."""
    parameters = given(raw, "rope_parameters", {})
    if not isinstance(parameters, Mapping):
        raise _wrong("rope_parameters", parameters, "a mapping")
    return parameters


def rope_theta(raw: Raw, default: float) -> float:
    """Return the rotary base from either spelling (``rope_theta`` or ``rope_parameters``); refuses scaled RoPE."""
    require(raw, "rope_scaling", None)
    parameters = rope_parameters(raw)
    require(parameters, "rope_type", "default")
    stated = raw if raw.get("rope_theta") is not None else parameters
    return number({"rope_theta": given(stated, "rope_theta", default)}, "rope_theta", default)


def rotary_dim(raw: Raw, head_dim: int) -> int:
    """Return how many leading channels of a head rotate (``partial_rotary_factor`` in either place, else all)."""
    key = "partial_rotary_factor"
    stated = raw if raw.get(key) is not None else rope_parameters(raw)
    factor = number({key: given(stated, key, 1.0)}, key, 1.0)
    if not 0.0 <= factor <= 1.0:
        raise _wrong(key, factor, "a share of the head's channels, from 0 to 1")
    return int(head_dim * factor)


def qwen_fields(raw: Raw, *, theta: float = 1e6, eps: float = 1e-6) -> dict[str, Any]:
    """Return the fields that every family with Qwen-shaped config.json keys reads the same way."""
    require(raw, "hidden_act", "silu")
    require(raw, "use_sliding_window", False)
    heads, width = count(raw, "num_attention_heads"), count(raw, "hidden_size")
    head_dim = width // heads if raw.get("head_dim") is None else count(raw, "head_dim")
    return {
        "names": QWEN_NAMES,
        "vocab_size": count(raw, "vocab_size"),
        "width": width,
        "layers": layer_count(raw, "num_hidden_layers"),
        "heads": heads,
        "kv_heads": given(raw, "num_key_value_heads", heads),
        "head_dim": head_dim,
        "ffn": given(raw, "intermediate_size", raw.get("dense_intermediate_size")),
        "norm_eps": number(raw, "rms_norm_eps", eps),
        "rope_theta": rope_theta(raw, theta),
        "rotary_dim": head_dim,
        "context_length": count(raw, "max_position_embeddings"),
        "init_std": number(raw, "initializer_range", 0.02),
        "tied_head": bool(raw.get("tie_word_embeddings", False)),
    }
