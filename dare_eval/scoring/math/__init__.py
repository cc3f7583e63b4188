r"""Mathematical answers: ordered extraction, then typed comparison that is exact and fails closed.

Order of extraction: the last ``\boxed`` or ``\fbox`` (adjacent boxes form a list), the last ``<answer>`` tag, a
``####`` marker, the last "answer is" phrase, the last formula in maths delimiters, a short reply as a whole, the last
number. Comparison: see ``structure``. math-verify and sympy run only in killable worker processes (``pool``), and only
for what the exact normal form (``ring``) cannot decide.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dare_eval.scoring import boxes, numbers, text
from dare_eval.scoring.base import NO_ANSWER, Score, gold_failure
from dare_eval.scoring.golds import clean_math_gold
from dare_eval.scoring.math.pool import ITEM_LIMIT_S
from dare_eval.scoring.math.readable import is_readable
from dare_eval.scoring.math.structure import Comparison
from dare_eval.scoring.policy import Policy, as_policy

MAX_EXTRACTED = 1000
SHORT_REPLY = 80

_EMPTY_BOX = re.compile(
    r"[\s.\\$?_-]*(?:\\(?:ldots|dots|cdots|text\{\s*(?:answer)?\s*\}))?[\s.?_-]*(?:your answer|answer)?"
)
_BLANK_BOX = re.compile(r"\\(?:f|d)?box(?:ed)?\s*\{\s*\}")
_PHRASE = re.compile(r"\banswer\b[ \t]*(?:is|are|:|=)[ \t]*:?\s*(?:that\b)?", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_FORMULA = re.compile(
    r"\$\$([^$]{1,999})\$\$|\$([^$\n]{1,999})\$|\\\(((?:(?!\\\().){1,999}?)\\\)|\\\[((?:(?!\\\[).){1,999}?)\\\]",
    re.DOTALL,
)
_STRAY_TAG = re.compile(r"</?[a-z]{3,}")


class Answer(NamedTuple):
    """Extracted text and the rule that found it."""

    text: str
    rule: str


def score_math(
    response: str,
    reference: Any,
    *,
    policy: Policy | dict[str, Any] | None = None,
    limit_s: float = ITEM_LIMIT_S,
    **_: Any,
) -> Score:
    """Score a mathematical answer against a gold in LaTeX or plain text.

    ``limit_s`` bounds one comparison in wall seconds. ``detail`` holds ``masks_left``, ``truncated`` (an unclosed box
    was met) and ``path`` (how the parts were decided: string, text, exact, base, ``sympy: ...``, ``refused: ...``).
    """
    rules = as_policy(policy)
    gold = clean_math_gold(reference)
    if gold is None:
        return gold_failure(reference, "empty")
    if not is_readable(gold):
        return gold_failure(reference, "not mathematics that the parser knows")
    cleaned = text.clean(response)
    found = extract(text.cut_next_question(cleaned.text), rules)
    facts: dict[str, Any] = {"masks_left": cleaned.masks_left, "truncated": _open_box(cleaned.text)}
    if found is None:
        return Score(False, 0.0, None, NO_ANSWER, facts)
    comparison = Comparison(rules, limit_s)
    correct = comparison.equal(gold, found.text[:MAX_EXTRACTED])
    facts["path"] = comparison.path[-8:]
    return Score(correct, float(correct), found.text[:MAX_EXTRACTED], found.rule, facts)


def extract(body: str, policy: Policy) -> Answer | None:
    """Return the answer of a reply by the module's rules, or None."""
    body = _BLANK_BOX.sub("", body) if "box" in body else body
    found = boxes.boxes(body)
    used = [box for box in found if (box.closed or policy.truncated == "accept") and not _is_placeholder(box.text)]
    if used:
        return _boxed(used, body, policy)
    unclosed = next((box for box in found if not box.closed), None)
    if unclosed is not None:
        body = body[: unclosed.start]
    elif found:
        body = body[: found[0].start] + body[found[-1].end :]
    tag = text.answer_tag(body, accept_open=policy.truncated == "accept")
    if tag is not None and tag.text.strip():
        return Answer(_without_phrase(tag.text.strip()), "answer_tag")
    return _marker(body) or _phrase(body) or _formula(body) or _whole(body) or _number(body)


def _is_placeholder(content: str) -> bool:
    """Tell whether a box holds no answer: dots, blanks or the words "your answer"."""
    content = content.strip()
    return len(content) <= SHORT_REPLY and _EMPTY_BOX.fullmatch(content) is not None


def _open_box(body: str) -> bool:
    return any(not box.closed for box in boxes.boxes(body))


def _boxed(used: list[boxes.Box], body: str, policy: Policy) -> Answer:
    group = {"first": used[:1], "last": used[-1:]}.get(policy.boxes) or boxes.final_group(used, body)
    contents = [_STRAY_TAG.split(boxes.unwrap(box.text))[0].strip() for box in group]
    distinct = list(dict.fromkeys(contents))
    one = "box_unclosed" if group[-1].lost_brace else "box"
    return Answer(", ".join(distinct), one if len(distinct) == 1 else "box_list")


def _marker(body: str) -> Answer | None:
    if "####" not in body:
        return None
    lines = [line.strip() for line in re.findall(r"(?<!#)#{4,}[ \t]*([^\n#]+)", body)]
    return Answer(_without_phrase(lines[-1]), "marker") if lines else None


def _phrase(body: str) -> Answer | None:
    """Return what follows the last "answer is": its last formula, or the words to the end of the sentence."""
    found = text.last_match(_PHRASE, body)
    if found is None:
        return None
    rest = body[found.end() :]
    formula = _FORMULA.match(rest.lstrip(" *:"))
    if formula is not None:
        return Answer(_group(formula), "answer_phrase")
    end = _SENTENCE_END.search(rest)
    sentence = rest[: end.start() if end else len(rest)].strip(" *:$").rstrip(" *.")
    formula = text.last_match(_FORMULA, sentence)
    said = _group(formula) if formula else sentence
    return Answer(said, "answer_phrase") if said else None


def _without_phrase(content: str) -> str:
    said = _phrase(content)
    return said.text if said else content.strip(" *`")


def _formula(body: str) -> Answer | None:
    found = text.last_match(_FORMULA, body)
    return Answer(_group(found), "last_formula") if found else None


def _group(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None).strip()


def _whole(body: str) -> Answer | None:
    short = body.strip().strip("*`").strip()
    return Answer(short, "whole_text") if 0 < len(short) <= SHORT_REPLY and "\n" not in short else None


def _number(body: str) -> Answer | None:
    number = numbers.last_number(numbers.tidy(body))
    return None if number is None else Answer(number.text, "last_number")
