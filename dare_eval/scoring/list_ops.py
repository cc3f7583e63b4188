r"""List operations: the right list, item by item and in order; free operations accept every right list.

The answer is read from the last closed ``<answer>`` tag, else the last ``\boxed``, else the whole reply when it is
nothing but items, else its last line. Separators, brackets, quotes, bullets and numbering around items do not count,
the items and their order do.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dare_eval.puzzles import list_ops
from dare_eval.scoring import boxes, text
from dare_eval.scoring.base import NO_ANSWER, Score, gold_failure
from dare_eval.scoring.policy import Policy, as_policy

_SEPARATOR = re.compile(r"\s*(?:,|;|\||->|=>|\u2192|\u3001|\n|\band\b|\s)\s*")
_DRESSING = re.compile(r"[\[\](){}\"'`*_]|\\(?:text|mathrm|left|right)")
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022]|\d{1,2}[.):])[ \t]+", re.MULTILINE)


def score_list_ops(response: str, reference: Any, *, policy: Policy | dict[str, Any] | None = None, **_: Any) -> Score:
    """Score a list answer.

    ``reference`` is a mapping (or its JSON) with ``operation``, ``items`` and what the operation needs, as
    ``dare_eval.puzzles.list_ops`` writes it. ``detail`` holds ``in_place``, the share of positions that are right
    (operations with one answer only).
    """
    task = read_task(reference)
    if task is None:
        return gold_failure(reference, "needs 'operation' and 'items'")
    rules = as_policy(policy)
    cleaned = text.clean(response)
    found = _raw(cleaned.text, task.vocabulary(), rules.truncated == "accept")
    items = read_list(found[0], task.vocabulary()) if found else []
    if not found or not items:
        return Score(False, 0.0, None, NO_ANSWER, {"masks_left": cleaned.masks_left})
    correct = task.accepts(items)
    facts: dict[str, Any] = {"masks_left": cleaned.masks_left}
    if task.answer is not None:
        right = sum(a == b for a, b in zip(items, task.answer, strict=False))
        facts["in_place"] = right / max(len(items), len(task.answer), 1)
    return Score(correct, float(correct), ", ".join(items), found[1], facts)


def read_task(reference: Any) -> list_ops.ListTask | None:
    """Return the task of a reference, or None when it is not one."""
    try:
        return list_ops.ListTask.from_dict(json.loads(reference) if isinstance(reference, str) else dict(reference))
    except (KeyError, TypeError, ValueError):
        return None


def read_list(raw: str, known: frozenset[str]) -> list[str]:
    """Return the items of a written list; the case of a known item does not matter."""
    plain = _DRESSING.sub(" ", _BULLET.sub(" ", raw)).strip(" .!\n\t")
    lower = {item.lower(): item for item in known}
    return [lower.get(item.lower(), item) for item in _SEPARATOR.split(plain) if item.strip()]


def _raw(body: str, known: frozenset[str], accept_open: bool) -> tuple[str, str] | None:
    tag = text.answer_tag(body, accept_open=accept_open)
    if tag is not None:
        inside = boxes.boxes(tag.ended)
        return (inside[-1].text if inside else tag.text), "answer_tag"
    boxed = [box for box in boxes.boxes(body) if box.closed or accept_open]
    if boxed:
        return boxed[-1].text, "box"
    if all(item in known for item in read_list(body, known)):
        return body, "whole_text"
    lines = [line for line in body.split("\n") if re.search(r"\w", line)]
    return (lines[-1].rpartition(":")[2], "last_line") if lines and not text.has_open_tag(body) else None
