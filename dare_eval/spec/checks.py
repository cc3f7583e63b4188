"""The rules a DecodeSpec must satisfy, each refusing with the value seen, what is allowed and a value that works.

Nothing here needs a network: whatever can be known from the settings alone is refused before a weight is read.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Collection
from numbers import Integral
from typing import TYPE_CHECKING, Any

from dare_eval.errors import UsageError, unknown
from dare_eval.spec.tables import (
    CACHES,
    CONFIDENCE_POLICIES,
    DTYPES,
    EARLY_STOPS,
    EOS_RULES,
    FAMILIES,
    FAMILY_GUARDED,
    PARITY_SWITCHES,
    POLICIES,
    POLICY_GUARDED,
    SCHEDULES,
    family_traits,
    policy_fields,
)

if TYPE_CHECKING:
    from dare_eval.spec.record import DecodeSpec


def check_token_ids(*, mask_id: int | None, pad_id: int | None, vocab_size: int | None = None) -> None:
    """Refuse a tokenizer without a mask token, a pad id equal to the mask id, and ids outside the vocabulary."""
    if mask_id is None:
        raise UsageError(
            "the tokenizer has no mask token and the model config no mask_token_id",
            seen="mask_token_id = None",
            allowed="an id that decoding may fill",
            remedy="set mask_token_id in config.json or mask_token in tokenizer_config.json",
        )
    for key, value in (("mask_token_id", mask_id), ("pad_token_id", pad_id)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise UsageError(f"{key} is no token id: {value!r}", seen=value, allowed="an integer")
    if pad_id == mask_id:
        raise UsageError(
            f"pad_token_id and mask_token_id are both {mask_id}: padding would be decoded as masks",
            seen=f"pad_token_id = {pad_id}, mask_token_id = {mask_id}",
            allowed="two different ids",
            remedy="set pad_token_id in config.json (the EOS id is the usual choice)",
        )
    if vocab_size is not None and not 0 <= mask_id < vocab_size:
        raise UsageError("mask_token_id lies outside the vocabulary", seen=mask_id, allowed=f"0 .. {vocab_size - 1}")


def check_spec(spec: DecodeSpec) -> None:
    """Run every rule; raises ``UsageError`` for the first one that does not hold."""
    _check_names(spec)
    _check_ranges(spec)
    _check_fields_in_use(spec)
    _check_lengths(spec)
    _check_combinations(spec)


def is_count(value: Any) -> bool:
    """Return whether ``value`` is an integer above 0 (a bool is not)."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def is_integer(value: Any) -> bool:
    """Return whether ``value`` is an integer of any library (a bool is not)."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether ``value`` is an integer of at least 0 (a bool or 0.0 is not)."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value: Any, low: float = -math.inf, high: float = math.inf) -> bool:
    """Return whether ``value`` is an integer or a float of ``low`` to ``high``, both included (a bool is not)."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        return False
    return isinstance(value, float) or abs(value) <= sys.float_info.max


def _check_names(spec: DecodeSpec) -> None:
    choices: dict[str, tuple[str, Collection[str]]] = {
        "family": ("model family", FAMILIES.names()),
        "policy": ("decoding policy", POLICIES.names()),
        "schedule": ("schedule setting", SCHEDULES),
        "eos_rule": ("eos_rule setting", EOS_RULES),
        "early_stop": ("early_stop setting", EARLY_STOPS),
        "dtype": ("dtype setting", DTYPES),
        "cache": ("cache setting", CACHES),
    }
    for key, (kind, allowed) in choices.items():
        if getattr(spec, key) not in allowed:
            raise unknown(kind, getattr(spec, key), allowed)
    _require(spec, "engine", lambda v: isinstance(v, str) and bool(v.strip()), "the name of an engine")
    _require(spec, "parity", lambda v: isinstance(v, tuple), "names of parity switches: " + ", ".join(PARITY_SWITCHES))
    for name in spec.parity:
        if not isinstance(name, str) or name not in PARITY_SWITCHES:
            raise unknown("parity switch", name, PARITY_SWITCHES)


def _check_ranges(spec: DecodeSpec) -> None:
    for key in ("gen_length", "block_length", "steps", "top_k", "min_transfer", "refresh"):
        _require(spec, key, is_count, "an integer above 0")
    for key in ("max_post_steps", "seed"):
        _require(spec, key, is_whole, "an integer of at least 0")
    for key in ("factor", "eps"):
        _require(spec, key, lambda v: is_number(v) and 0 < v < math.inf, "a finite number above 0")
    for key in ("temperature", "alg_temp", "cfg_scale"):
        _require(spec, key, lambda v: is_number(v) and 0 <= v < math.inf, "a finite number of at least 0")
    upper = math.inf if spec.policy == "eb" else 1
    nats_or_share = "nats, at least 0" if upper > 1 else "a probability in [0, 1]"
    _require(spec, "threshold", lambda v: is_number(v, 0, upper), nats_or_share)
    _require(spec, "edit_threshold", lambda v: is_number(v, 0, 1), "a probability in [0, 1]")
    _require(spec, "top_p", lambda v: is_number(v, 0, 1) and v > 0, "a probability in (0, 1]")
    _require(spec, "eos_gamma", _are_two_factors, "two factors in [0, 1]")
    _require(spec, "stop_ids", lambda v: isinstance(v, tuple) and all(map(is_whole, v)), "token ids")


def _are_two_factors(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(is_number(factor, 0, 1) for factor in value)


def _require(spec: DecodeSpec, key: str, holds: Callable[[Any], bool], allowed: str) -> None:
    """Refuse a value for which ``holds`` is False; None stands for "unset" where that is the field's default."""
    value = getattr(spec, key)
    if value is None and any(field.name == key and field.default is None for field in dataclasses.fields(spec)):
        return
    if not holds(value):
        raise UsageError(f"decoding setting '{key}' is out of range: {value!r}", seen=repr(value), allowed=allowed)


def _check_fields_in_use(spec: DecodeSpec) -> None:
    traits, reads = family_traits(spec.family), policy_fields(spec.policy)
    defaults = {field.name: field.default for field in dataclasses.fields(spec)}
    for key in dict.fromkeys(POLICY_GUARDED + FAMILY_GUARDED):
        value = getattr(spec, key)
        if value == defaults[key]:
            continue
        if key in POLICY_GUARDED and key not in reads:
            _refuse(f"policy '{spec.policy}' does not use '{key}'", key, value, "a policy that reads it")
        if key in FAMILY_GUARDED and key not in traits.fields:
            _refuse(f"family '{spec.family}' does not use '{key}'", key, value, "a family that reads it")
    for name in spec.parity:
        if name not in traits.parity:
            _refuse(f"family '{spec.family}' has no parity switch '{name}'", "parity", name, ", ".join(traits.parity))
    if spec.eos_gamma is not None and spec.eos_rule != "eoser":
        _refuse(f"eos_rule '{spec.eos_rule}' does not use 'eos_gamma'", "eos_gamma", spec.eos_gamma, "eos_rule = eoser")
    if spec.refresh is not None and spec.cache not in ("prefix", "dual"):
        _refuse(f"cache '{spec.cache}' does not use 'refresh'", "refresh", spec.refresh, "cache = prefix or dual")
    if spec.temperature == 0 and spec.family != "dream" and not spec.parity:
        for key in ("top_k", "top_p"):
            if getattr(spec, key) is not None:
                _refuse(f"'{key}' has no effect at temperature 0", key, getattr(spec, key), "temperature above 0")


def _refuse(what: str, key: str, value: Any, instead: str) -> None:
    raise UsageError(
        what, seen=f"{key} = {value}", allowed=f"{key} unset, or {instead}", remedy=f"remove decoding['{key}']"
    )


def _check_lengths(spec: DecodeSpec) -> None:
    length, block = spec.gen_length, spec.block_length
    if spec.schedule == "ascending":
        return _check_ascending(spec)
    if length % block and not family_traits(spec.family).absolute_grid:
        near = max((d for d in range(1, length + 1) if length % d == 0), key=lambda d: -abs(d - block))
        raise UsageError(
            f"gen_length {length} is not a multiple of block_length {block}",
            seen=f"gen_length = {length}, block_length = {block}",
            allowed="gen_length a multiple of block_length",
            remedy=f"block_length = {near}, or gen_length = {math.ceil(length / block) * block}",
        )
    if spec.steps is None:
        return None
    most = spec.blocks * block
    if spec.steps % spec.blocks or spec.steps > most:
        near = min(max(round(spec.steps / spec.blocks), 1) * spec.blocks, most)
        raise UsageError(
            f"steps {spec.steps} cannot be spread over {spec.blocks} blocks of {block} tokens",
            seen=f"steps = {spec.steps}, gen_length = {length}, block_length = {block}",
            allowed=f"a multiple of {spec.blocks} of at most {most} (each step commits at least one token)",
            remedy=f"steps = {near}",
        )


def _check_ascending(spec: DecodeSpec) -> None:
    most = spec.gen_length.bit_length() - 1
    if spec.policy != "quota":
        _refuse(f"policy '{spec.policy}' does not use 'schedule'", "schedule", spec.schedule, "policy = quota")
    elif most < 1:
        raise UsageError(
            f"schedule '{spec.schedule}' has nothing to double in a response of one token",
            seen=f"schedule = {spec.schedule}, gen_length = {spec.gen_length}",
            allowed="gen_length of at least 2",
            remedy="schedule = equal",
        )
    elif spec.steps is None:
        raise UsageError(f"schedule '{spec.schedule}' needs 'steps'", remedy=f"steps = {most}")
    elif spec.steps > most or (spec.blocks > 1 and spec.steps != most) or spec.blocks > most:
        raise UsageError(
            f"steps {spec.steps} cannot double from one token to {spec.gen_length} tokens in {spec.blocks} blocks",
            seen=f"gen_length = {spec.gen_length}, block_length = {spec.block_length}, steps = {spec.steps}",
            allowed=f"steps = {most} with at most {most} blocks; fewer steps with one block",
            remedy=f"steps = {most}" if spec.blocks <= most else f"block_length = {spec.gen_length}, steps = {most}",
        )


def _check_combinations(spec: DecodeSpec) -> None:
    caches = family_traits(spec.family).caches
    if spec.cache not in caches:
        raise UsageError(
            f"cache '{spec.cache}' does not work for family '{spec.family}'",
            seen=f"cache = {spec.cache}",
            allowed=", ".join(caches),
            remedy=f"cache = {caches[-1]}",
        )
    if spec.cfg_scale and spec.cache not in ("none", "prefix"):
        raise UsageError(
            f"cache '{spec.cache}' does not work with guidance",
            seen=f"cache = {spec.cache}, cfg_scale = {spec.cfg_scale}",
            allowed="cache none or prefix, or cfg_scale = 0",
            remedy="cache = prefix",
        )
    if spec.eos_rule in ("eoser", "confidence_eos_eot_inf") and spec.policy not in CONFIDENCE_POLICIES:
        allowed = "a policy that ranks by confidence: " + ", ".join(CONFIDENCE_POLICIES)
        raise UsageError(
            f"eos_rule '{spec.eos_rule}' does not work with policy '{spec.policy}'",
            seen=f"policy = {spec.policy}",
            allowed=allowed,
            remedy="eos_rule = none",
        )
    if spec.eos_rule == "eoser" and spec.steps is None:
        _refuse(
            f"eos_rule 'eoser' needs 'steps', which policy '{spec.policy}' has not",
            "eos_rule",
            "eoser",
            "policy = quota",
        )
    if "threshold" in policy_fields(spec.policy) and spec.threshold is None:
        raise UsageError(
            f"policy '{spec.policy}' needs 'threshold'", allowed="a probability in [0, 1]", remedy="threshold = 0.9"
        )
    if spec.policy == "dynamic" and spec.steps is not None and spec.min_transfer is not None:
        _refuse("policy 'dynamic' takes steps or min_transfer, not both", "steps", spec.steps, "min_transfer unset")
    if spec.max_post_steps is not None and spec.edit_threshold is None:
        _refuse("'max_post_steps' bounds editing", "max_post_steps", spec.max_post_steps, "edit_threshold set")
    if spec.policy == "suffix" and family_traits(spec.family).absolute_grid:
        _refuse(
            "policy 'suffix' prunes what a block-causal family never sees", "policy", spec.policy, "policy = threshold"
        )
    if spec.policy == "suffix" and spec.cache != "none":
        _refuse("policy 'suffix' prunes the canvas and keeps no cache", "cache", spec.cache, "cache = none")
