"""DecodeSpec: every setting that decides what a denoising run produces, as one frozen, hashed record.

Imported by evaluation, training and the leaderboard alike; needs nothing but the standard library. A spec is
checked when it is built, before a weight is read: unknown keys, values out of range, combinations that cannot
work and fields that the family or policy would ignore are all refused. It leaves out anything about a model's
weights, prompts or data.

    >>> DecodeSpec.build("llada", gen_length=128, block_length=32, steps=128).digest()[:4]
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import UsageError, unknown
from dare_eval.registry import Registry

FAMILIES = Registry(
    "model family",
    "dare.families",
    {
        "llada": "dare_eval.networks.families.llada:FAMILY",
        "llada_moe": "dare_eval.networks.families.llada_moe:FAMILY",
        "dream": "dare_eval.networks.families.dream:FAMILY",
        "sdar": "dare_eval.networks.families.sdar:FAMILY",
        "sdar_moe": "dare_eval.networks.families.sdar_moe:FAMILY",
        "llada2": "dare_eval.networks.families.llada2:FAMILY",
    },
)
POLICIES = Registry(
    "decoding policy",
    "dare.decoders",
    {
        "quota": "dare_eval.decoding.policies.quota:Quota",
        "threshold": "dare_eval.decoding.policies.threshold:Threshold",
    },
)

CACHES = ("none", "prefix", "dual", "block")
SCHEDULES = ("equal", "ascending")
EOS_RULES = ("none", "logits_eos_inf", "confidence_eos_eot_inf", "eoser")
DTYPES = ("float32", "bfloat16", "float16", "float64")

# Fields that only some policies read; setting one elsewhere is refused, since it would be ignored silently.
POLICY_FIELDS: dict[str, frozenset[str]] = {
    "quota": frozenset(),
    "threshold": frozenset({"threshold"}),
}
_GUARDED = ("threshold", "factor", "alg_temp", "edit_threshold", "max_post_steps", "min_transfer", "eos_gamma")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSpec:
    """One decoding configuration; build it with :meth:`build` to get nearest-name errors for unknown keys."""

    family: str
    """Model family; decides attention, logit shift and defaults."""
    gen_length: int
    """Response length in tokens."""
    block_length: int
    """Tokens per block; equal to ``gen_length`` for full-sequence diffusion."""
    steps: int | None = None
    """Denoising steps over the whole response; None lets the policy run each block until it is full."""
    policy: str = "quota"
    """Rule that picks which masked positions are committed at a step."""
    threshold: float | None = None
    """Confidence from which a position is committed (threshold and dynamic policies), in [0, 1]."""
    factor: float | None = None
    """Factor of the factor policy."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy for every family."""
    top_p: float | None = None
    """Nucleus mass in (0, 1]; None keeps all."""
    top_k: int | None = None
    """Number of values kept; None keeps all."""
    alg_temp: float | None = None
    """Temperature of Dream's position sampling; None takes the best positions."""
    eps: float | None = None
    """Smallest time of Dream's schedule."""
    cfg_scale: float = 0.0
    """Classifier-free guidance weight; 0 switches it off."""
    edit_threshold: float | None = None
    """Confidence from which a committed token is replaced (LLaDA2.1)."""
    max_post_steps: int | None = None
    """Passes without masks allowed per block (LLaDA2.1)."""
    min_transfer: int | None = None
    """Smallest number of tokens committed per step."""
    eos_gamma: tuple[float, float] | None = None
    """(min, max) factor on the confidence of EOS proposals (EOSER)."""
    schedule: str = "equal"
    """Block schedule: equal blocks or ascending step size."""
    cache: str = "none"
    """Key/value cache policy."""
    eos_rule: str = "none"
    """What is done to EOS proposals."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end a response besides the tokenizer's EOS."""
    seed: int = 0
    """Base seed; each row draws from its own generator derived from it and the row's identity."""
    dtype: str = "float32"
    """Compute type of the network."""
    engine: str = "native"
    """Engine and, once it runs, its version."""

    def __post_init__(self) -> None:
        """Refuse values out of range and combinations that cannot work."""
        _check_names(self)
        _check_ranges(self)
        _check_lengths(self)
        _check_combinations(self)

    @classmethod
    def build(cls, family: str, /, **settings: Any) -> DecodeSpec:
        """Return the spec for ``family``; raises ``UsageError`` naming key, value and what is allowed."""
        known = {field.name for field in dataclasses.fields(cls)} - {"family"}
        for key in settings:
            if key not in known:
                raise unknown("decoding setting", key, known)
        for key in ("stop_ids", "eos_gamma"):
            if isinstance(settings.get(key), list):
                settings[key] = tuple(settings[key])
        for key in ("gen_length", "block_length"):
            if key not in settings:
                raise UsageError(f"decoding setting '{key}' is missing", remedy=f"set decoding['{key}']")
        return cls(family=family, **settings)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> DecodeSpec:
        """Return the spec that :meth:`to_dict` stored."""
        settings = dict(record)
        return cls.build(settings.pop("family"), **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-ready values."""
        record = dataclasses.asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in record.items()}

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON form; two specs are the same setting iff digests agree."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def blocks(self) -> int:
        """Number of equal blocks in the response."""
        return self.gen_length // self.block_length


def check_token_ids(*, mask_id: int | None, pad_id: int | None, vocab_size: int | None = None) -> None:
    """Refuse a tokenizer without a mask token, a pad id equal to the mask id, and ids outside the vocabulary."""
    if mask_id is None:
        raise UsageError(
            "the tokenizer has no mask token and the model config no mask_token_id",
            seen="mask_token_id = None",
            allowed="an id that decoding may fill",
            remedy="set mask_token_id in config.json or mask_token in tokenizer_config.json",
        )
    if pad_id == mask_id:
        raise UsageError(
            f"pad_token_id and mask_token_id are both {mask_id}: padding would be decoded as masks",
            seen=f"pad_token_id = {pad_id}, mask_token_id = {mask_id}",
            allowed="two different ids",
            remedy="set pad_token_id in config.json (the EOS id is the usual choice)",
        )
    if vocab_size is not None and not 0 <= mask_id < vocab_size:
        raise UsageError("mask_token_id lies outside the vocabulary", seen=mask_id, allowed=f"0 .. {vocab_size - 1}")


def _check_names(spec: DecodeSpec) -> None:
    if spec.family not in FAMILIES:
        raise unknown("model family", spec.family, FAMILIES.names())
    if spec.policy not in POLICIES:
        raise unknown("decoding policy", spec.policy, POLICIES.names())
    for key, allowed in (("cache", CACHES), ("schedule", SCHEDULES), ("eos_rule", EOS_RULES), ("dtype", DTYPES)):
        if getattr(spec, key) not in allowed:
            raise unknown(f"{key} setting", str(getattr(spec, key)), allowed)


def _check_ranges(spec: DecodeSpec) -> None:
    positive = ("gen_length", "block_length", "steps", "top_k", "min_transfer", "factor", "eps")
    for key in positive:
        _require(spec, key, lambda value: value > 0, "a number above 0")
    for key in ("temperature", "alg_temp", "cfg_scale", "max_post_steps", "seed"):
        _require(spec, key, lambda value: value >= 0 and math.isfinite(value), "a finite number of at least 0")
    for key in ("threshold", "edit_threshold"):
        _require(spec, key, lambda value: 0 <= value <= 1, "a probability in [0, 1]")
    _require(spec, "top_p", lambda value: 0 < value <= 1, "a probability in (0, 1]")
    for key in ("gen_length", "block_length", "steps", "top_k", "min_transfer", "max_post_steps", "seed"):
        _require(spec, key, lambda value: isinstance(value, int) and not isinstance(value, bool), "an integer")


def _require(spec: DecodeSpec, key: str, holds: Any, allowed: str) -> None:
    value = getattr(spec, key)
    if value is None:
        return
    try:
        fine = bool(holds(value))
    except TypeError:
        fine = False
    if not fine:
        raise UsageError(f"decoding setting '{key}' is out of range: {value!r}", seen=value, allowed=allowed)


def _check_lengths(spec: DecodeSpec) -> None:
    length, block = spec.gen_length, spec.block_length
    if length % block:
        near = max((d for d in range(1, length + 1) if length % d == 0), key=lambda d: -abs(d - block))
        raise UsageError(
            f"gen_length {length} is not a multiple of block_length {block}",
            seen=f"gen_length = {length}, block_length = {block}",
            allowed="gen_length a multiple of block_length",
            remedy=f"block_length = {near}, or gen_length = {math.ceil(length / block) * block}",
        )


def _check_combinations(spec: DecodeSpec) -> None:
    used = POLICY_FIELDS.get(spec.policy)
    for key in _GUARDED if used is not None else ():
        if getattr(spec, key) is not None and key not in (used or ()):
            raise UsageError(
                f"policy '{spec.policy}' does not use '{key}'",
                seen=f"{key} = {getattr(spec, key)}",
                allowed=f"{key} unset, or a policy that reads it",
                remedy=f"remove decoding['{key}']",
            )
    if spec.policy == "threshold" and spec.threshold is None:
        raise UsageError("policy 'threshold' needs 'threshold'", allowed="a probability in [0, 1]", remedy="threshold = 0.9")
