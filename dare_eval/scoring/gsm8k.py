r"""Grade-school arithmetic: one number, found by written rules in order, compared exactly.

Order: the last ``####`` marker that a number follows, the last ``\boxed`` with a digit in it (adjacent boxes form a
list, empty ones and placeholders are skipped; ``box_unclosed`` when its brace is missing but something else ends it),
the last ``<answer>`` tag with a digit, the last "answer is" phrase, the last number. Before that special tokens are
removed and the text is cut where the model runs on into a new question. There is no tail window, no unit conversion
and no number word.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple

from dare_eval.scoring import boxes, numbers, text
from dare_eval.scoring.base import NO_ANSWER, Score, gold_failure
from dare_eval.scoring.golds import clean_number_gold
from dare_eval.scoring.math import ring, tidy
from dare_eval.scoring.policy import Policy, as_policy

_MARKER = re.compile(r"####+[ \t]*((?:(?!####)[^\n])*)")
_MARKER_LEAD = re.compile(r"(?:[\s:=~(\[\\]|(?:the |final |correct )*answer(?: is)?)*", re.IGNORECASE)
_HEADING = re.compile(r"[.):][ \t]+\S")
_PHRASE = re.compile(
    r"\banswer\b[ \t]*(?:is|are|was|will be|would be|should be|equals|[:=])[ \t]*(?:that|:)?\s*", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_DIGIT = re.compile(r"\d")
_STRAY_TAG = re.compile(r"</?[a-z]")
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]+|[$\u20ac\u00a3\u00a5]")


class Answer(NamedTuple):
    """An extracted answer: how it is shown, its exact value (None: never equal), whether a percent sign stood by it."""

    text: str
    value: Fraction | None
    percent: bool
    rule: str


def score_gsm8k(response: str, reference: Any, *, policy: Policy | dict[str, Any] | None = None, **_: Any) -> Score:
    """Score a numeric answer.

    ``reference`` is the number, with or without separators, or a worked answer that ends in ``#### number``.
    ``detail`` holds ``masks_left`` and ``truncated`` (the text ends inside a box).
    """
    rules = as_policy(policy)
    gold = clean_number_gold(reference)
    if gold is None:
        return gold_failure(reference, "not a number")
    cleaned = text.clean(response)
    body = numbers.tidy(text.cut_next_question(cleaned.text))
    found = extract(body, rules)
    facts = {"masks_left": cleaned.masks_left, "truncated": any(not box.closed for box in boxes.boxes(body))}
    if found is None:
        return Score(False, 0.0, None, NO_ANSWER, facts)
    correct = matches(found, gold, rules)
    return Score(correct, float(correct), found.text, found.rule, facts)


def extract(body: str, policy: Policy) -> Answer | None:
    """Return the answer of tidied text by the module's rules, or None."""
    marked = _marker(body) if "####" in body else None
    if marked is not None:
        return marked
    found = boxes.boxes(body)
    used = [box for box in found if (box.closed or policy.truncated == "accept") and _DIGIT.search(box.text)]
    if used:
        return _boxed(used, body, policy)
    if any(not box.closed for box in found):
        body = body[: next(box.start for box in found if not box.closed)]
    tag = text.answer_tag(body, accept_open=policy.truncated == "accept")
    if tag is not None and _DIGIT.search(tag.text):
        return _in_prose(tag.text, "answer_tag")
    return _phrase(body) or _last(body, "last_number")


def matches(found: Answer, gold: Fraction, policy: Policy) -> bool:
    """Tell whether an answer is the gold number under ``policy``."""
    if found.value is None or (found.percent and policy.percent == "strict"):
        return False
    if found.value == gold or (found.percent and policy.percent == "ratio" and found.value / 100 == gold):
        return True
    return policy.decimals == "rounded" and numbers.rounds_to(found.text, found.value, gold)


def _answer(number: numbers.Number, rule: str) -> Answer:
    shown = number.text if number.value is None else numbers.canonical(number.value)
    return Answer(shown, number.value, number.percent, rule)


def _last(body: str, rule: str) -> Answer | None:
    number = numbers.last_number(body)
    return None if number is None else _answer(number, rule)


def _marker(body: str) -> Answer | None:
    """Return the number of the last marker that has one; numbered markdown headings are no answers."""
    previous: Fraction | None = None
    answer: Answer | None = None
    for found in _MARKER.finditer(body):
        line = found[1]
        listed = list(numbers.numbers(line))
        if not listed:
            continue
        lead = _MARKER_LEAD.match(line)
        first = listed[0]
        value = first.value
        heading = value is not None and _HEADING.match(line, first.end) and (value == 1 or value - 1 == previous)
        previous = value
        if heading:
            answer = None
        elif line[lead.end() if lead else 0 : first.start].strip(" $\u20ac\u00a3\u00a5") == "" or len(listed) == 1:
            answer = _answer(first, "marker")
    return answer


def _boxed(used: list[boxes.Box], body: str, policy: Policy) -> Answer:
    if policy.boxes == "first":
        return _in_box(used[0])
    group = boxes.final_group(used, body) if policy.boxes == "last_group" else used[-1:]
    answers = [_in_box(box) for box in group]
    if len({answer.value if answer.value is not None else answer.text for answer in answers}) == 1:
        return answers[-1]
    return Answer(", ".join(answer.text for answer in answers), None, False, "box_list")


def _in_box(box: boxes.Box) -> Answer:
    """Read a box: one number with or without units, or arithmetic; anything else is compared as text and fails."""
    content = _STRAY_TAG.split(boxes.unwrap(box.text))[0]
    bare = _WRAPPED.sub(" ", content)
    if not re.search(r"\d", bare):
        bare = _WRAPPED.sub(r"\1", content)
    side = bare.rpartition("=")[2]
    listed = list(numbers.numbers(side))
    if len(listed) == 1 and not re.search(
        r"[*/^!]|\\(?!left|right|[,;! ]|[dtc]?frac)", side.replace(listed[0].text, "")
    ):
        return _answer(listed[0], "box_unclosed" if box.lost_brace else "box")
    try:
        value = ring.constant(ring.parse(tidy.spell(_WORDS.sub(" ", side))))
    except ring.Unsupported:
        value = None
    if value is None:
        return Answer(content.strip()[:200], None, False, "box_text")
    return Answer(numbers.canonical(value), value, False, "box_arithmetic")


def _phrase(body: str) -> Answer | None:
    """Return the number of the last "answer is" sentence that has one."""
    limit = len(body)
    for found in reversed(list(_PHRASE.finditer(body))):
        end = _SENTENCE_END.search(body, found.end(), limit)
        answer = _in_sentence(body[found.end() : end.start() if end else limit], "answer_phrase")
        if answer is not None:
            return answer
        limit = found.start()
    return None


def _in_sentence(sentence: str, rule: str) -> Answer | None:
    number = next(numbers.numbers(sentence.rpartition("=")[2]), None) or next(numbers.numbers(sentence), None)
    return None if number is None else _answer(number, rule)


def _in_prose(content: str, rule: str) -> Answer | None:
    listed = list(numbers.numbers(content))
    if len(listed) == 1:
        return _answer(listed[0], rule)
    found = _phrase(content) or _last(content, rule)
    return None if found is None else found._replace(rule=rule)
