"""DecodeSpec: every setting that decides what a denoising run produces, as one frozen, hashed record.

Imported by evaluation, training and the leaderboard alike; needs nothing but the standard library. A spec is
checked when it is built, before a weight is read: unknown keys, values out of range, combinations that cannot
work and fields that the family or policy would ignore are all refused. Defaults that depend on family and policy
are filled in by :meth:`DecodeSpec.build`, so the stored record is complete. It leaves out anything about a
model's weights, prompts or data. docs/decoding.md explains each field.

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
from dare_eval.spec.checks import check_spec, is_count, is_number
from dare_eval.spec.tables import FLOAT_FIELDS, FamilyTraits, family_traits, policy_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSpec:
    """One decoding configuration; build it with :meth:`build`, which fills in the defaults of the family."""

    family: str
    """Model family; decides attention, block grid and defaults."""
    gen_length: int
    """Response length in tokens."""
    block_length: int
    """Tokens per block; equal to ``gen_length`` for full-sequence diffusion."""
    steps: int | None = None
    """Denoising steps over the whole response; None where the policy runs each block until it is full."""
    policy: str = "quota"
    """Rule that picks which masked positions are committed at a step."""
    threshold: float | None = None
    """Confidence from which a position is committed, in [0, 1]; policy eb: bound on the summed entropy in nats."""
    factor: float | None = None
    """Bound of the policies factor and frechet."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy for every family."""
    top_p: float | None = None
    """Nucleus mass in (0, 1]; None keeps all."""
    top_k: int | None = None
    """Number of values kept; None keeps all."""
    alg_temp: float | None = None
    """Temperature of Dream's position sampling; None takes the best positions."""
    eps: float | None = None
    """Last time of Dream's schedule."""
    cfg_scale: float = 0.0
    """Classifier-free guidance weight; 0 switches it off."""
    edit_threshold: float | None = None
    """Probability above which a committed token of the current block is replaced (LLaDA2.1); None: no editing."""
    max_post_steps: int | None = None
    """Passes that start without masks allowed per block (LLaDA2.1)."""
    min_transfer: int | None = None
    """Tokens that policy dynamic commits at least per step, in place of ``steps``."""
    eos_gamma: tuple[float, float] | None = None
    """(first, last) factor on the confidence of EOS proposals (eos_rule eoser)."""
    schedule: str = "equal"
    """Equal blocks, or ascending step size (ASS: step i commits 2**i tokens)."""
    cache: str = "none"
    """Key/value cache policy."""
    refresh: int | None = None
    """Passes between two full passes within a block of the prefix and dual caches; None: one per block."""
    eos_rule: str = "none"
    """What is done to EOS proposals."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end a response besides those of the checkpoint (EOS, end of turn)."""
    early_stop: str = "none"
    """When a row with an end token leaves: never, after its block, or once everything before it is committed."""
    seed: int = 0
    """Base seed; each row draws from its own generator derived from it and the row's prompt."""
    dtype: str = "float32"
    """Compute type of the network."""
    engine: str = "native"
    """Engine and, once it runs, its version."""
    parity: tuple[str, ...] = ()
    """Named faults of the reference implementations to reproduce (``PARITY_SWITCHES``)."""

    def __post_init__(self) -> None:
        """Refuse values out of range and combinations that cannot work."""
        check_spec(self)

    @classmethod
    def build(cls, family: str, /, **settings: Any) -> DecodeSpec:
        """Return the spec for ``family``; raises ``UsageError`` naming key, value and what is allowed."""
        known = {field.name for field in dataclasses.fields(cls)} - {"family"}
        for key in settings:
            if key not in known:
                raise unknown("decoding setting", key, known)
        if settings.get("seed", 0) is None:  # older records hold it
            del settings["seed"]
        for key, value in settings.items():
            settings[key] = _canonical(key, value)
        _fill_defaults(family_traits(family), settings)
        for key in ("gen_length", "block_length"):
            if settings.get(key) is None:
                raise UsageError(f"decoding setting '{key}' is missing", remedy=f"set decoding['{key}']")
        return cls(family=family, **settings)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> DecodeSpec:
        """Return the spec that :meth:`to_dict` stored."""
        settings = dict(record)
        return cls.build(settings.pop("family", None), **settings)

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
        """Number of blocks that hold the response when it starts at a block border."""
        return math.ceil(self.gen_length / self.block_length)

    @property
    def block_steps(self) -> int | None:
        """Denoising steps per block; None where the policy has no step budget or the schedule is ascending."""
        return None if self.steps is None or self.schedule == "ascending" else self.steps // self.blocks


def _canonical(key: str, value: Any) -> Any:
    """Return ``value`` in the one form it is stored in: equal settings must have equal digests."""
    lone = {"parity": str, "stop_ids": int}.get(key)
    if lone is not None and isinstance(value, lone) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(_canonical(key, part) for part in value) if key == "eos_gamma" else tuple(value)
    if key in FLOAT_FIELDS and isinstance(value, int) and is_number(value):
        return float(value)
    return value


def _fill_defaults(traits: FamilyTraits, settings: dict[str, Any]) -> None:
    """Write the values that depend on family and policy into ``settings`` where they are unset."""
    reads = policy_fields(settings.get("policy", "quota"))
    if settings.get("alg_temp") == 0:
        settings["alg_temp"] = None
    _default(settings, "block_length", traits.block_length or settings.get("gen_length"))
    _default(settings, "early_stop", traits.early_stop)
    if settings.get("edit_threshold") is not None and "edit_threshold" in reads & traits.fields:
        _default(settings, "max_post_steps", 16)
        _default(settings, "min_transfer", 1)
    if "steps" in reads and settings.get("min_transfer") is None:
        _default(settings, "steps", _most_steps(settings))
    if "factor" in reads:
        _default(settings, "factor", 1.0)
    if "eps" in reads and "eps" in traits.fields:
        _default(settings, "eps", 1e-3)
    if settings.get("eos_rule") == "eoser":
        _default(settings, "eos_gamma", (0.01, 1.0) if settings.get("schedule") == "ascending" else (0.4, 1.0))


def _default(settings: dict[str, Any], key: str, value: Any) -> None:
    if settings.get(key) is None:
        settings[key] = value


def _most_steps(settings: Mapping[str, Any]) -> int | None:
    """Return the step count that commits one token per step (ascending: doubles until the response is full)."""
    length, block = settings.get("gen_length"), settings.get("block_length")
    if not is_count(length) or not is_count(block):
        return None
    assert isinstance(length, int) and isinstance(block, int)
    if settings.get("schedule") == "ascending":
        return length.bit_length() - 1 or None  # one token leaves nothing to double
    return math.ceil(length / block) * block
