r"""Countdown: an expression over the given numbers, each used exactly once, that equals the target exactly.

Where the answer is read, first rule that finds something: the last closed ``<answer>`` tag, the last ``\boxed``
(inside the tag when there is one), the whole reply or its last line when it is nothing but an expression (a lead-in
"... is" or a colon may stand before it). An expression met somewhere in the reasoning is no answer, unless the policy
``untagged`` says so. A trailing ``= target`` is accepted. There is no credit for format: what the published reward
pays for it is a baseline of the report (``dare_eval.puzzles.countdown.FORMAT_REWARD``), not part of the metric.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dare_eval.scoring import boxes, expression, text
from dare_eval.scoring.base import NO_ANSWER, Score, binary, gold_failure
from dare_eval.scoring.policy import Policy, as_policy

MAX_NUMBERS = 12

_ARITHMETIC = re.compile(r"[-+*/()\s\d=]+")
_OPERATION = re.compile(r"\d[\s)]{0,20}[-+*/][\s(]{0,20}\d")
_DRESSING = " \t\n>*_`\"':.,;$"
_PROSE_SIGNS = " \t\n=*/+-"
_LEAD = re.compile(r"(?:\bis|:)\s*", re.IGNORECASE)
_PREFIX = re.compile(r"(?:expression|equation|solution|answer)(?: is)? ?:", re.IGNORECASE)


class Problem(NamedTuple):
    """The numbers that must be used, each once, and the value to reach."""

    numbers: tuple[int, ...]
    target: Fraction


class Candidate(NamedTuple):
    """Text that should be an expression, and the rule that found it."""

    text: str
    rule: str


def score_countdown(
    response: str,
    reference: Any,
    *,
    numbers: Sequence[int] | str | None = None,
    policy: Policy | dict[str, Any] | None = None,
    **_: Any,
) -> Score:
    """Score a Countdown answer.

    ``reference`` is the target with ``numbers`` beside it, or a mapping (or its JSON) with ``numbers`` and ``target``.
    Correct is 0/1 and so is the value. ``detail`` says why an answer is wrong, and ``formatted`` whether a closed
    ``<answer>`` tag was there.
    """
    rules = as_policy(policy)
    problem = read_problem(reference, numbers)
    if problem is None:
        return gold_failure(reference, "needs integers 'numbers' and a 'target'")
    cleaned = text.clean(response)
    tag = text.answer_tag(cleaned.text, accept_open=rules.truncated == "accept")
    found = _candidate(cleaned.text, tag, rules)
    facts = {"formatted": tag is not None and tag.closed, "masks_left": cleaned.masks_left}
    if found is None:
        return binary(False, None, NO_ANSWER, reason="no expression", **facts)
    wrong = check(found.text, problem, rules)
    return binary(wrong is None, found.text, found.rule, **facts, **({} if wrong is None else {"reason": wrong}))


def read_problem(reference: Any, numbers: Sequence[int] | str | None) -> Problem | None:
    """Return the problem of a reference, or None when it is not one."""
    try:
        if isinstance(reference, str) and reference.lstrip().startswith("{"):
            reference = json.loads(reference)
        if isinstance(reference, dict):
            reference, numbers = reference["target"], reference["numbers"]
        listed = json.loads(numbers) if isinstance(numbers, str) else numbers
        given = tuple(int(number) for number in listed or ())
        return Problem(given, Fraction(str(reference).strip())) if 0 < len(given) <= MAX_NUMBERS else None
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def check(answer: str, problem: Problem, policy: Policy) -> str | None:
    """Return None when ``answer`` (normalised) solves the problem, else the reason in words."""
    sides = [side.strip() for side in answer.split("=")]
    main = 1 if len(sides) == 2 and sides[0].isdigit() and len(problem.numbers) > 1 else 0
    try:
        parsed = [_parse(side, policy) for side in sides]
    except expression.ExpressionError as error:
        return str(error)
    if Counter(parsed[main].numbers) != Counter(problem.numbers):
        return "not each number exactly once"
    if parsed[main].value != problem.target:
        return f"value is {parsed[main].value}"
    others = parsed[:main] + parsed[main + 1 :]
    if policy.false_equation == "reject" and any(other.value != problem.target for other in others):
        return "the stated equation is false"
    return None


def _parse(side: str, policy: Policy) -> expression.Parsed:
    return expression.parse(side, unary_minus=policy.unary_minus, juxtaposition=policy.juxtaposition)


def _candidate(full: str, tag: text.Tagged | None, policy: Policy) -> Candidate | None:
    inside = full if tag is None else tag.text
    found = boxes.boxes(full if tag is None else tag.ended)
    boxed = [box for box in found if box.closed or policy.truncated == "accept"]
    if boxed:
        return Candidate(_plain(boxed[-1].text), "box" if tag is None else "answer_tag_box")
    if tag is not None:
        plain = _plain(inside)
        only = _only_expression(plain, "answer_tag") or _last_run(plain, "answer_tag_expression")
        return only or (Candidate(plain, "answer_tag") if plain else None)
    if text.has_open_tag(full):
        return None
    whole = _only_expression(_plain(full), "whole_text") or _last_line(full)
    return whole or (_last_run(_plain(full), "last_expression") if policy.untagged == "accept" else None)


def _plain(raw: str) -> str:
    bare = raw.strip(_DRESSING)
    prefix = _PREFIX.match(bare)
    if prefix is not None:
        bare = bare[prefix.end() :]
    return expression.normalise(bare.strip(_DRESSING)).strip(_DRESSING)


def _only_expression(plain: str, rule: str) -> Candidate | None:
    return Candidate(plain, rule) if _ARITHMETIC.fullmatch(plain) and _OPERATION.search(plain) else None


def _last_line(full: str) -> Candidate | None:
    """Return the last line when it is an expression, alone or after ``... is`` or a colon."""
    line = full.rstrip().rpartition("\n")[2][-2 * expression.MAX_CHARS :]
    lead = text.last_match(_LEAD, line)
    return _only_expression(_plain(line[lead.end() :] if lead else line), "last_line")


def _last_run(plain: str, rule: str) -> Candidate | None:
    """Return the last stretch of arithmetic in prose that has an operator between two numbers."""
    runs = [run[0] for run in _ARITHMETIC.finditer(plain) if _OPERATION.search(run[0])]
    return Candidate(_trimmed(runs[-1]), rule) if runs else None


def _trimmed(run: str) -> str:
    """Return a run without the signs and unmatched brackets that belong to the prose around it."""
    run = run.strip(_PROSE_SIGNS)[: expression.MAX_CHARS + 1]
    while run.startswith(")") or (run.endswith(")") and run.count(")") > run.count("(")):
        run = (run[1:] if run.startswith(")") else run[:-1]).strip(_PROSE_SIGNS)
    while run.endswith("(") or (run.startswith("(") and run.count("(") > run.count(")")):
        run = (run[:-1] if run.endswith("(") else run[1:]).strip(_PROSE_SIGNS)
    return run
