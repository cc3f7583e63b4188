r"""Numbers in prose: separators, signs, currency, percent, fractions; clock times and dates stay whole.

A number starts and ends with a digit, so a lone comma or a full stop is never part of one. A minus is a sign only
where it cannot be a subtraction or a hyphen. Values are exact ``Fraction``; a token such as ``5:00`` or ``1/2/2020``
is returned without a value, so that nobody reads its last part as the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

MAX_DIGITS = 60

_SPACES = "\u00a0\u2009\u202f"
_MINUSES = str.maketrans(dict.fromkeys("\u2212\u2012\u2013\ufe63\uff0d", "-"))
_LATEX_COMMA = re.compile(rf"(?<=\d)(?:\{{,\}}|\\[,!;:]|[{_SPACES}]|,\\!)(?=\d{{3}}(?!\d))")
_LATEX_SIGNS = re.compile(r"\\([$%#&])")
_EMPHASIS = re.compile(
    r"\*\*+|__+|`+|(?<![\w*)\]])\*(?=-?\$?\d[\d,.]{0,30}\*(?![\w(*]))|(?<=\d)\*(?=[\s.,;:!?]|$)(?!\s*[\d(])"
)
_TOKEN = re.compile(
    r"""
    (?P<opaque>\d+(?::\d+)+ | \d+/\d+/\d+ | \d+(?:\.\d+){2,} | \d{4}-\d{1,2}-\d{1,2})
  | \\[dtc]?frac\s*\{\s*(?P<top>-?\d{1,30})\s*\}\s*\{\s*(?P<bottom>\d{1,30})\s*\}
  | (?P<over>\d{1,30}/\d{1,30})(?![\d.])
  | (?P<power>\d{1,20}(?:\.\d{1,20})?[eE][-+]?\d{1,2}(?![\d.A-Za-z]))
  | (?P<plain>(?:\d{1,3}(?:,\d{3})+(?!\d) | \d{1,2}(?:,\d{2})+,\d{3}(?!\d) | \d+)(?:\.\d+)? | \.\d+)
    """,
    re.VERBOSE,
)
_PERCENT = re.compile(r"\s{0,2}(?:%|percent\b)")
_SIGN = re.compile(r"-\s?(?:[$\u20ac\u00a3\u00a5]\s?)?$|[$\u20ac\u00a3\u00a5]\s?-$")


class Number(NamedTuple):
    """A number token; ``value`` is None for a token that is compared whole (clock time, date, version)."""

    text: str
    value: Fraction | None
    start: int
    end: int
    percent: bool


def tidy(text: str) -> str:
    r"""Unify minus signs, drop markdown emphasis and separators written ``{,}``, ``\,`` or as a thin space."""
    text = text.translate(_MINUSES)
    if "*" in text or "_" in text or "`" in text:
        text = _EMPHASIS.sub("", text)
    if "\\" in text:
        text = _LATEX_SIGNS.sub(r"\1", text)
    return _LATEX_COMMA.sub("", text)


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of tidied text in order; digits inside words, exponents and indices are not numbers."""
    for found in _TOKEN.finditer(text):
        before = text[max(found.start() - 4, 0) : found.start()]
        if before and (before[-1].isalpha() or before[-1] in "_^" or before.endswith(("^{", "_{"))):
            continue
        yield _number(text, found, before)


def last_number(text: str) -> Number | None:
    """Return the last number of tidied text."""
    last = None
    for last in numbers(text):  # noqa: B007 - the loop only runs to its end
        pass
    return last


def _number(text: str, found: re.Match[str], before: str) -> Number:
    sign = _SIGN.search(before)
    start = found.start()
    negative = False
    if sign is not None and found["opaque"] is None:
        at = found.start() - len(before) + sign.start()
        negative = _is_sign(text, at, spaced=bool(re.match(r"-\s", sign[0])))
        start = at if negative else start
    value = _value(found)
    percent = _PERCENT.match(text, found.end())
    signed = -value if negative and value is not None else value
    return Number(
        text[start : found.end()], signed, start, percent.end() if percent else found.end(), percent is not None
    )


def _is_sign(text: str, at: int, *, spaced: bool) -> bool:
    """Tell whether the minus at ``at`` is a sign: no operand before it, no word, and no gap (a list bullet) after."""
    if spaced and "$" not in text[at : at + 4]:
        return False
    left = text[:at].rstrip(" ") if at else ""
    if not left:
        return True
    if left[-1].isdigit() or left[-1] in ")]}%-":
        return False
    return not (len(left) == at and left[-1].isalpha())


def _value(found: re.Match[str]) -> Fraction | None:
    if found["opaque"] is not None:
        return None
    if found["top"] is not None:
        return Fraction(int(found["top"]), int(found["bottom"])) if int(found["bottom"]) else None
    if found["over"] is not None:
        top, bottom = found["over"].split("/")
        return Fraction(int(top), int(bottom)) if int(bottom) else None
    if found["power"] is not None:
        return Fraction(found["power"])
    digits = found["plain"].replace(",", "")
    return Fraction(digits) if len(digits) <= MAX_DIGITS else None


def canonical(value: Fraction) -> str:
    """Write a value as people do: an integer, a finite decimal without trailing zeros, or a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    places = 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def rounds_to(text: str, value: Fraction, gold: Fraction) -> bool:
    """Tell whether ``text``, a decimal of at least three significant digits, is ``gold`` correctly rounded."""
    whole, _, decimals = text.lstrip("-$").replace(",", "").partition(".")
    if not decimals.isdigit() or len((whole + decimals).lstrip("0")) < 3:
        return False
    error: Fraction = abs(value - gold)
    return bool(2 * error * 10 ** len(decimals) <= 1)
