r"""Size guard before sympy: what could make it work for hours is refused by its looks.

Refused are long answers, powers of powers of numbers, numeric exponents and factorials over a bound, and long digit
strings. The guard is about safety, the wall limit of the worker is the second line.
"""

from __future__ import annotations

import re

MAX_CHARS = 400
MAX_DIGITS = 60
MAX_EXPONENT = 2000
MAX_FACTORIAL = 5000
MAX_OPERATORS = 80

_EXPONENT = re.compile(r"(?:\^|\*\*)\s*(?:\{\s*)?[-+(\s]*(\d+)")
_FACTORIAL = re.compile(r"(\d+|\))\s*\}?\s*!+")
_BOUND = re.compile(r"\\(?:sum|prod|int|lim|binom)(?![A-Za-z])")


def refusal(latex: str) -> str | None:
    """Return why ``latex`` may not reach sympy, or None."""
    if len(latex) > MAX_CHARS or sum(latex.count(sign) for sign in "+-*/^") > MAX_OPERATORS:
        return "too long"
    if any(len(digits) > MAX_DIGITS for digits in re.findall(r"\d+", latex)):
        return "number too long"
    if any(int(digits) > MAX_EXPONENT for digits in _EXPONENT.findall(latex)):
        return "exponent too large"
    if _tower(latex):
        return "power tower"
    if any(part != ")" and int(part) > MAX_FACTORIAL for part in _FACTORIAL.findall(latex)) or "!!" in latex:
        return "factorial too large"
    if re.search(r"[!)]\s*\)*\s*!|\^\s*\{?[^{}]*!|!\s*\)*\s*\^", latex):
        return "nested factorial"
    if any(int(digits) > 10**6 for digits in re.findall(r"\d+", latex)) and _BOUND.search(latex):
        return "bound too large"
    return None


def _tower(latex: str) -> bool:
    """Tell whether a power stands inside an exponent."""
    for found in re.finditer(r"\^|\*\*", latex):
        rest = latex[found.end() :].lstrip()
        inner = rest[: _group_end(rest)] if rest[:1] in ("{", "(") else rest[:1]
        after = rest[len(inner) :].lstrip()
        if "^" in inner or "**" in inner or after.startswith(("^", "**")):
            return True
    return False


def _group_end(text: str) -> int:
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "{(") - (char in "})")
        if depth == 0:
            return index + 1
    return len(text)
