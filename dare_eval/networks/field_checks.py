"""What the fields that a family reads from config.json must satisfy before a network is built from them.

The same rules hold for families of outside packages, whose ``parse`` is somebody else's code: fields that
``NetworkConfig`` does not have are the package's fault, values out of range are config.json's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.networks.config import TOKEN_KEYS, MoEConfig, NetworkConfig
from dare_eval.networks.names import KeyNames
from dare_eval.spec.checks import is_count

if TYPE_CHECKING:
    from dare_eval.networks.families.base import Family

ELSEWHERE = {"family", "raw", "stop_ids", *TOKEN_KEYS}
"""Fields of ``NetworkConfig`` that no family sets."""
PARSED = {field.name: field for field in dataclasses.fields(NetworkConfig) if field.name not in ELSEWHERE}
NEEDED = {name for name, field in PARSED.items() if field.default is dataclasses.MISSING}
SIZES = ("vocab_size", "width", "layers", "heads", "kv_heads", "head_dim", "ffn", "context_length")
# Least values. Below a base of 1 the rotation would speed up from channel to channel, up to an overflow.
NUMBERS = {
    "rope_theta": ("rope_theta", 1.0),
    "norm_eps": ("norm_eps (rms_norm_eps)", 0.0),
    "init_std": ("init_std (initializer_range)", 0.0),
}


def check_fields(family: Family, fields: Any) -> None:
    """Refuse what a family's ``parse`` must not return; raises ``SetupError`` naming the family."""
    if not isinstance(fields, Mapping):
        raise _broken(family, type(fields).__name__, "a mapping of fields")
    strange, absent = sorted(set(fields) - set(PARSED), key=str), sorted(NEEDED - set(fields))
    if strange:
        raise _broken(family, f"'{strange[0]}'", ", ".join(PARSED))
    if absent:
        raise _broken(family, f"no '{absent[0]}'", ", ".join(sorted(NEEDED)))
    for key, kind in (("names", KeyNames), ("moe", MoEConfig)):
        value = fields.get(key)
        if not isinstance(value, kind) and not (key == "moe" and value is None):
            raise _broken(family, f"{key} as {type(value).__name__}", kind.__name__)


def _broken(family: Family, seen: str, allowed: str) -> SetupError:
    return SetupError(
        f"the family '{family.name}' does not return fields of a network",
        seen=seen,
        allowed=allowed,
        remedy="correct its parse(), see docs/extending.md",
    )


def check_sizes(fields: Mapping[str, Any]) -> None:
    """Refuse sizes and numbers that no network can be built from, or that would make every logit NaN."""
    for key in SIZES:
        if not is_count(fields[key]):
            raise DataError(f"config.json gives no usable {key}", seen=repr(fields[key]), allowed="an integer above 0")
    _check_numbers(fields)
    _check_heads(fields)
    for key, name in (("block_length", "block_size"), ("learned_positions", "learned_positions")):
        value = fields.get(key)
        if value is not None and not is_count(value):
            raise DataError(f"{name} is out of range", seen=repr(value), allowed="an integer above 0, or null")
    moe = fields.get("moe")
    if moe is not None and len(moe.sparse_layers) != fields["layers"]:
        raise DataError(
            "the layers with experts are not given for every layer",
            seen=f"{len(moe.sparse_layers)} of {fields['layers']} layers",
            allowed="one entry per layer",
        )


def _check_numbers(fields: Mapping[str, Any]) -> None:
    for key, (name, least) in NUMBERS.items():
        value = fields.get(key, least)
        fine = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not fine or value < least:
            raise DataError(
                f"config.json gives no usable {name}",
                seen=repr(value),
                allowed=f"a finite number of at least {least:g}",
                remedy="correct it in config.json",
            )


def _check_heads(fields: Mapping[str, Any]) -> None:
    rotary, head_dim = fields["rotary_dim"], fields["head_dim"]
    if not isinstance(rotary, int) or isinstance(rotary, bool) or not 0 <= rotary <= head_dim:
        raise DataError(
            "config.json gives no usable number of rotating channels (partial_rotary_factor)",
            seen=repr(rotary),
            allowed=f"0 .. {head_dim}, the channels of one head",
        )
    if rotary % 2:
        raise UsageError(
            "rotary positions turn pairs of a head's dimensions, and one head has an odd number of them",
            seen=f"width {fields['width']}, {fields['heads']} heads: {rotary} dimensions each",
            allowed="an even number of dimensions per head",
        )
    if fields["heads"] % fields["kv_heads"]:
        raise UsageError(
            "the number of heads is not a multiple of the number of key/value heads",
            seen=f"{fields['heads']} heads, {fields['kv_heads']} key/value heads",
            allowed=f"a divisor of {fields['heads']}",
        )
