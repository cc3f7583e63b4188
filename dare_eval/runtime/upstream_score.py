"""Verdicts of upstream's evaluators, item by item, out of the details in their various shapes.

Upstream's details may be a list or a dict, flat or with one list per question (one entry per repeat), with the
verdict under several names, or absent. A verdict that cannot be attributed to an item for certain is None, never a
guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

METRIC_ORDER = ("score", "accuracy", "humaneval_pass@1", "pass@1", "exact_match")
_FLAGS = ("correct", "is_correct", "cascade_correct")
_ANSWERS = ("pred", "prediction", "predictions")
_PLAIN_EQUALITY = ("AccEvaluator", "EMEvaluator")
_NOT_METRICS = ("bp", "sys_len", "ref_len", "type", "details")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What upstream made of one item."""

    correct: bool | None
    extracted: str | None


@dataclass(frozen=True, slots=True)
class Upstream:
    """Upstream's number for a data set, or why there is none."""

    status: str
    """``ok``, ``not run``, ``n/a (...)`` or ``failed``."""
    metric: str = ""
    value: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return {"status": self.status, "metric": self.metric, "value": self.value}


def number_of(result: Mapping[str, Any]) -> Upstream:
    """Return the headline number of an upstream result."""
    numbers = {
        name: float(value)
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in _NOT_METRICS
    }
    for name in (*METRIC_ORDER, *numbers):
        if name in numbers:
            return Upstream("ok", name, numbers[name])
    return Upstream("failed")


def verdicts(
    result: Mapping[str, Any], extracted: Sequence[Any], references: Sequence[Any], kind: str
) -> list[Verdict]:
    """Return one verdict per item; ``extracted`` are the postprocessed predictions, ``kind`` the evaluator's name."""
    total = len(extracted)
    details = _as_list(result.get("details"))
    known = [Verdict(None, _text(answer)) for answer in extracted]
    if details and total % len(details) == 0:
        repeats = total // len(details)
        known = [_verdict(details[i % len(details)], i // len(details), repeats, known[i]) for i in range(total)]
    if kind in _PLAIN_EQUALITY and all(one.correct is None for one in known):
        known = [Verdict(str(a) == str(b), _text(a)) for a, b in zip(extracted, references, strict=True)]
    return known


def _as_list(details: Any) -> list[Mapping[str, Any]]:
    if isinstance(details, Mapping):
        details = [value for key, value in details.items() if key != "type"]
    return [one for one in details or [] if isinstance(one, Mapping)]


def _verdict(detail: Mapping[str, Any], repeat: int, repeats: int, fallback: Verdict) -> Verdict:
    flag = next((detail[name] for name in _FLAGS if detail.get(name) is not None), None)
    answer = next((detail[name] for name in _ANSWERS if detail.get(name) is not None), None)
    flag, answer = _of_repeat(flag, repeat, repeats), _of_repeat(answer, repeat, repeats)
    correct = None if flag is None or isinstance(flag, list | dict) else bool(flag)
    return Verdict(correct, _text(answer) if answer is not None else fallback.extracted)


def _of_repeat(value: Any, repeat: int, repeats: int) -> Any:
    return value[repeat] if isinstance(value, list) and len(value) == repeats else value


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
