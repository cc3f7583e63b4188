r"""Multiple choice: one letter, found by written rules in order.

Order: the last explicit statement ("answer is B", an answer in Chinese, a ``\boxed`` letter; whichever comes last),
the last ``<answer>`` tag, a letter with a delimiter at the start of the reply ("D. The mitochondria"), a last line that
is only a letter, the last "option B" or "(B)", the text of exactly one option. Letters inside formulas and the article
"a" are no answers, and naming two letters is a hedge, which is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dare_eval.errors import UsageError
from dare_eval.scoring import boxes, text
from dare_eval.scoring.base import NO_ANSWER, Score, binary, gold_failure
from dare_eval.scoring.policy import Policy, as_policy

_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit|mbox|textrm)\s*\{([^{}]*)\}")
_WIDE = {0xFF21 + index: chr(ord("A") + index) for index in range(26)}
_FORMULA = re.compile(r"\$[^$\n]{2,200}\$|\\\(.{2,200}?\\\)|\\\[.{2,200}?\\\]")


class Patterns(NamedTuple):
    """The rules of one set of letters, compiled."""

    phrase: re.Pattern[str]
    start: re.Pattern[str]
    alone: re.Pattern[str]
    mention: re.Pattern[str]
    hedge: re.Pattern[str]


class Found(NamedTuple):
    """A letter (or what stood in its place) and the rule that found it."""

    answer: str
    rule: str


def score_choice(
    response: str,
    reference: Any,
    *,
    choices: Sequence[str] | None = None,
    options: Sequence[str] | None = None,
    policy: Policy | dict[str, Any] | None = None,
    **_: Any,
) -> Score:
    """Score a multiple-choice answer.

    ``reference`` is the right letter, ``choices`` the letters on offer (default A to D, or as many as there are
    ``options``), ``options`` the option texts in the order of the letters, for replies that repeat a text.
    """
    rules = as_policy(policy)
    letters = _letters(choices, options)
    gold = str(reference).strip().strip("().").upper()
    if gold not in letters:
        return gold_failure(reference, f"not one of {''.join(letters)}")
    cleaned = text.clean(response)
    body = _plain(text.cut_next_question(cleaned.text))
    found = extract(body, letters, rules) or _option_text(body, letters, options)
    if found is None:
        return binary(False, None, NO_ANSWER, masks_left=cleaned.masks_left)
    return binary(found.answer == gold, found.answer, found.rule, masks_left=cleaned.masks_left)


def extract(body: str, letters: tuple[str, ...], policy: Policy) -> Found | None:
    """Return the choice of a cleaned reply by the module's rules, or None."""
    patterns = _patterns(letters)
    explicit = _explicit(body, patterns, policy)
    if explicit is not None:
        return explicit
    tag = text.answer_tag(body, accept_open=policy.truncated == "accept")
    if tag is not None:
        inside = patterns.start.match(tag.text.strip() + "\n")
        if inside is not None:
            return Found(inside[1].upper(), "answer_tag")
    prose = _FORMULA.sub(" ", body).strip()
    for rule, found in (
        ("start", patterns.start.match(prose + "\n")),
        ("last_line", patterns.alone.fullmatch(prose.rpartition("\n")[2].strip())),
        ("mention", text.last_match(patterns.mention, prose)),
    ):
        if found is not None:
            return Found(next(letter for letter in found.groups() if letter).upper(), rule)
    return None


def _explicit(body: str, patterns: Patterns, policy: Policy) -> Found | None:
    """Return the last of answer statements and boxes that name a letter."""
    stated: list[tuple[int, Found]] = []
    for found in patterns.phrase.finditer(body):
        hedge = patterns.hedge.match(body, found.end())
        answer = f"{found[1].upper()}, {hedge[1].upper()}" if hedge else found[1].upper()
        stated.append((found.start(), Found(answer, "answer_phrase")))
    for box in boxes.boxes(body):
        inside = patterns.start.match(box.text.strip() + "\n")
        if inside is not None and (box.closed or policy.truncated == "accept"):
            hedge = patterns.hedge.match(box.text.strip(), inside.end(1))
            stated.append((box.start, Found(f"{inside[1]}, {hedge[1]}" if hedge else inside[1].upper(), "box")))
    return max(stated, key=lambda item: item[0])[1] if stated else None


def _option_text(body: str, letters: tuple[str, ...], options: Sequence[str] | None) -> Found | None:
    """Return the letter whose option text is the whole reply, or the only one that occurs in its last line."""
    if not options:
        return None
    texts = {letter: _bare(option) for letter, option in zip(letters, options, strict=False) if _bare(option)}
    whole, last = _bare(body), _bare(body.strip().rpartition("\n")[2])
    equal = [letter for letter, option in texts.items() if option == whole]
    named = equal or [
        letter for letter, option in texts.items() if re.search(rf"(?<!\w){re.escape(option)}(?!\w)", last)
    ]
    return Found(named[0], "option_text") if len(named) == 1 else None


def _bare(option: str) -> str:
    return re.sub(r"[\s*_`.,;:!?\"'()]+", " ", option).strip().lower()


def _plain(body: str) -> str:
    body = body.translate(_WIDE).replace("**", "").replace("__", "").replace("`", "")
    return _WRAPPED.sub(r"\1", body) if "\\" in body else body


@lru_cache(maxsize=64)
def _patterns(letters: tuple[str, ...]) -> Patterns:
    one = "[" + "".join(letters) + "]"
    either = "[" + "".join(letters) + "".join(letters).lower() + "]"
    # A letter that begins a word, an article ("a good idea") or a formula ("A = 3") is no choice.
    article = r"(?!(?<=[AaI])[ \t]+(?!(?:or|and|because|since|as|is|which|for|but)\b)[a-z])"
    ends = r"(?![A-Za-z0-9_^=]|'[a-z]| ?=)" + article
    lead = r"[\s:(\[{\"'$\\]{0,12}(?:(?:option|choice|letter)\s{1,3})?(?:\\?boxed\s?\{|\\?\()?[\s(\[{\"'$]{0,4}"
    stated = r"(?:answers?|choice|option)[ \t]{0,3}(?:is|are|:|=|should be|would be|must be)(?:[ \t]{0,3}:)?"
    says = r"\u7b54\u6848(?:\u662f|\u4e3a|\u5e94\u4e3a|\u9009)?"  # "the answer (is, should be)"
    chinese = rf"(?:{says}|\u6545?\u9009|\u9009\u62e9)[:\uff1a]?\s{{0,3}}(?:\u9009\u9879)?"  # or "so choose", "option"
    return Patterns(
        phrase=re.compile(rf"(?:(?i:\b{stated})|{chinese}){lead}({either}){ends}"),
        start=re.compile(
            rf"[\s(\[{{\"'$\\]{{0,6}}({one})(?:[ \t]*[.:)\]}},\n\"'$\\\uff0e\u3001\uff1a]|[ \t]+(?:or|and)\b)"
        ),
        alone=re.compile(rf"(?i:(?:option|choice|answer)\s{{0,3}}:?\s{{0,3}})?[(\[]?({one})[)\].]?"),
        mention=re.compile(rf"\b(?i:option|choice)\s{{1,3}}\(?({one})\b|\(({one})\)"),
        hedge=re.compile(
            rf"[)\].,\"'}}]{{0,3}}[ \t]*(?:(?:,[ \t]*)?(?:or|and)\b|/|,)[ \t]*(?:option )?[(\[]?({either})(?![A-Za-z])"
        ),
    )


def _letters(choices: Sequence[str] | None, options: Sequence[str] | None) -> tuple[str, ...]:
    if choices is None:
        return tuple("ABCDEFGHIJKLMNOP"[: len(options) if options else 4])
    letters = tuple(str(choice).strip().upper() for choice in choices)
    if not letters or any(re.fullmatch(r"[A-Z]", letter) is None for letter in letters):
        raise UsageError("choices must be single letters", seen=choices, allowed="for example ['A', 'B', 'C', 'D']")
    return letters
