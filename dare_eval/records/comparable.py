"""Are two results the same measurement? Every setting that differs is found, named and weighed.

``refuse``: the scores measure different things (another prompt, template, extractor, length or item set), so no
difference is printed unless the reader allows that setting by name. ``label``: the difference is printed, and says
beside it what else differs. ``note``: machine and versions, listed only. A setting nobody knows about here is
refused, since it may matter; a setting that one side did not record is a label.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dare_eval.spec import DecodeSpec

REFUSE, LABEL, NOTE = "refuse", "label", "note"
SPEC = "decode_spec"

# What a model is may differ: that is the question being asked. Names and times say nothing about the measurement.
IDENTITY = frozenset({
    "model", "model_id", "family", "weight_hash", "parent", "parent_hash", "algorithm", "checkpoint", "run_id", "run",
    "folder", "started", "finished", "wall_s", "status", "budget", "abbr", "name",
})  # fmt: skip
NOTED = frozenset({
    "device", "attn_backend", "packages", "python", "platform", "git", "seed", "seeds", "batch_size", "cpus", "threads",
    "command", "environment",
})  # fmt: skip
DECODING = frozenset(field.name for field in dataclasses.fields(DecodeSpec)) - NOTED - IDENTITY
LENGTHS = frozenset({"gen_length", "max_out_len", "max_new_tokens", "length", "max_seq_len"})
_WORDS = {
    "prompt_hash": "prompt",
    "prompt_sha": "prompt",
    "task_template": "task template",
    "chat_template": "chat template",
    "content_hash": "items",
    "scorer": "extractor or scorer",
    "extractor": "extractor",
    "rendered_prompts": "prompt as the model received it",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not equal in both results."""

    name: str
    severity: str
    """``refuse``, ``label`` or ``note``."""
    a: Any
    b: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Comparability:
    """All settings in which two results differ."""

    differences: tuple[Difference, ...]

    @property
    def comparable(self) -> bool:
        """True when the scores may be read as a difference of the models alone."""
        return not any(found.severity != NOTE for found in self.differences)

    @property
    def reasons(self) -> list[str]:
        """Why the scores are not a difference of the models alone."""
        return [found.reason for found in self.differences if found.severity != NOTE]

    @property
    def notes(self) -> list[str]:
        """What else differs: machine, versions, seeds."""
        return [found.reason for found in self.differences if found.severity == NOTE]

    def refused(self, allow: Collection[str] = ()) -> list[Difference]:
        """Return the differences that forbid printing a delta, except those named in ``allow``."""
        return [found for found in self.differences if found.severity == REFUSE and found.name not in allow]


def compare_settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> Comparability:
    """Return what differs between two results described by flat settings.

    ``decode_spec`` is a mapping and compared field by field. Two results of one checkpoint (equal ``weight_hash``)
    compare its decoding, so decode settings and lengths are labels there, not refusals.
    """
    same_weights = a.get("weight_hash") is not None and a.get("weight_hash") == b.get("weight_hash")
    found: list[Difference] = []
    for name in sorted((set(a) | set(b)) - IDENTITY):
        left, right = a.get(name), b.get(name)
        if name == SPEC and isinstance(left, Mapping) and isinstance(right, Mapping):
            found.extend(_spec_differences(left, right, same_weights))
        elif left != right:
            found.append(_difference(name, left, right, same_weights))
    return Comparability(tuple(found))


def _spec_differences(a: Mapping[str, Any], b: Mapping[str, Any], same_weights: bool) -> list[Difference]:
    names = sorted(name for name in (set(a) | set(b)) - {"family"} if a.get(name) != b.get(name))
    return [
        Difference(
            name, _severity(name, same_weights), a.get(name), b.get(name), _reason(name, a.get(name), b.get(name))
        )
        for name in names
    ]


def _difference(name: str, a: Any, b: Any, same_weights: bool) -> Difference:
    severity = _severity(name, same_weights)
    if severity == REFUSE and (a is None or b is None):  # one side did not record it: say so, do not accuse
        severity = LABEL
    return Difference(name, severity, a, b, _reason(name, a, b))


def _severity(name: str, same_weights: bool) -> str:
    if name in NOTED:
        return NOTE
    if name in LENGTHS:
        return LABEL if same_weights else REFUSE
    return LABEL if name in DECODING or name == SPEC else REFUSE


def _reason(name: str, a: Any, b: Any) -> str:
    decoding = "decode spec" if name in DECODING or name == SPEC else _WORDS.get(name, name)
    what = "length" if name in LENGTHS else decoding
    label = what if what.replace(" ", "_") == name else f"{what} ({name})"
    if a is None or b is None:
        side, known = ("the first run", b) if a is None else ("the second run", a)
        return f"{label}: not set or not recorded for {side}, {_short(known)} for the other"
    return f"{label} differs: {_short(a)} / {_short(b)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
