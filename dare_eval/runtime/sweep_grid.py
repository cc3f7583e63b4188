"""The settings of a sweep: every combination of the values given, each policy with the fields that it reads.

A field that a policy does not read is left out for that policy instead of being an error, so that quota (steps) and
threshold (threshold) stand in one grid. What a combination as a whole cannot be (steps that do not divide, a cache
the family lacks) is not decided here: ``DecodeSpec`` refuses it and the sweep lists it as skipped. Reads no weights.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.errors import UsageError, unknown
from dare_eval.spec import POLICIES, DecodeSpec, policy_fields
from dare_eval.spec.tables import CACHES, POLICY_GUARDED
from dare_eval.values import read_values

ALL = "all"
DEFAULT_THRESHOLDS = {"eb": 0.35}
"""Threshold of a policy that needs one when none is given; 0.9 for all that compare probabilities."""
SPEED = ("steps", "threshold", "factor", "min_transfer")
"""Fields that trade quality for speed inside one method; settings that differ in them only form one curve."""

Value = Any
"""What one field is set to; a list for a field that holds several numbers or names."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid."""

    decoding: dict[str, Any]
    """Decode settings of a model config; None switches a field of the base off."""
    fields: dict[str, Any]
    """The fields that tell this setting from the others."""

    @property
    def label(self) -> str:
        """Return the differing fields as ``policy=quota,steps=8``."""
        return ",".join(f"{key}={_shown(value)}" for key, value in self.fields.items())

    @property
    def curve(self) -> str:
        """Return the method: the label without the fields that only trade quality for speed."""
        kept = [f"{key}={_shown(value)}" for key, value in self.fields.items() if key not in SPEED]
        return ",".join(kept) or "all settings"


def parse_grid(options: Mapping[str, str | None], others: Sequence[str]) -> dict[str, list[Value]]:
    """Return field -> values from named options and from ``key=v1,v2`` texts; ``key=[a,b],[c,d]`` gives two lists.

    ``all`` stands for every policy or cache. Raises ``UsageError`` for an unknown field, an empty list of values and
    a grid with nothing in it.
    """
    known = [field.name for field in dataclasses.fields(DecodeSpec) if field.name not in ("family", "engine")]
    given = {key: text for key, text in options.items() if text is not None}
    for entry in others:
        key, sign, text = entry.partition("=")
        if not sign:
            raise UsageError("a setting is not key=value", seen=entry, allowed="key=v1,v2", remedy="--set steps=8,4")
        given[key.strip()] = text
    grid = {key: read_values(key, text) for key, text in given.items()}
    for key, values in grid.items():
        if key not in known:
            raise unknown("decoding setting", key, known)
        if not values:
            raise UsageError(f"no value for '{key}'", seen=given[key], allowed="values separated by commas")
    if not grid:
        raise UsageError("nothing to sweep over", remedy="--steps 16,8,4 or --policy all or --set key=v1,v2")
    for key, names in (("policy", POLICIES.names()), ("cache", list(CACHES))):
        if grid.get(key) == [ALL]:
            grid[key] = list(names)
    return grid


def expand(
    base: Mapping[str, Any], grid: Mapping[str, Sequence[Value]], resolved: Mapping[str, Any] | None = None
) -> list[Setting]:
    """Return the settings of ``grid`` on top of the decode settings ``base``, each once, in the order given.

    ``resolved`` are the settings of ``base`` with the values of its preset, where it names one. Raises
    ``UsageError`` for an unknown policy, and for a field that no chosen policy reads.
    """
    known = base if resolved is None else resolved
    policies = [str(policy) for policy in grid.get("policy") or [known.get("policy") or "quota"]]
    for key in grid:
        if key in POLICY_GUARDED and not any(key in policy_fields(_known(policy)) for policy in policies):
            raise UsageError(
                f"no policy of this sweep reads '{key}'",
                seen=f"policy = {', '.join(policies)}",
                allowed="policies that do: " + ", ".join(p for p in POLICIES.names() if key in policy_fields(p)),
                remedy="--policy quota,threshold",
            )
    found: dict[str, Setting] = {}
    for policy in policies:
        for setting in _of_policy(policy, base, known, grid):
            found.setdefault(setting.label, setting)
    return list(found.values())


def _of_policy(
    policy: str, base: Mapping[str, Any], known: Mapping[str, Any], grid: Mapping[str, Sequence[Value]]
) -> list[Setting]:
    reads = policy_fields(policy)
    unread = [key for key in POLICY_GUARDED if key not in reads]
    own = {key: values for key, values in grid.items() if key not in unread and key != "policy"}
    same_policy = policy == (known.get("policy") or "quota")
    if "threshold" in reads and "threshold" not in own and not (same_policy and known.get("threshold") is not None):
        own["threshold"] = [DEFAULT_THRESHOLDS.get(policy, 0.9)]
    start = {**base, **{key: None for key in unread if known.get(key) is not None}}
    shown: dict[str, Any] = {"policy": policy} if "policy" in grid else {}
    found = []
    for values in itertools.product(*own.values()):
        chosen = dict(zip(own, values, strict=True))
        found.append(Setting({**start, **shown, **chosen}, {**shown, **chosen}))
    return found


def _known(policy: str) -> str:
    if policy not in POLICIES:
        raise unknown("decoding policy", policy, POLICIES.names())
    return policy


def _shown(value: Value) -> str:
    """Return a value as it stands in the name of a setting, which is also the name of a folder."""
    return "+".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
