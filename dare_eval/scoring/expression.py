"""Arithmetic as people write it, read exactly: integers, + - * /, parentheses; LaTeX and Unicode signs.

A tokeniser and a recursive descent over ``fractions.Fraction``; model text never reaches ``eval`` or sympy. Left out
on purpose: powers, floor division, decimals and variables, so that a Countdown answer can use nothing but what the
game allows. Size limits make the work per expression bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARS = 600
MAX_TOKENS = 200
MAX_DEPTH = 40
MAX_DIGITS = 12

_MEANING = {
    "*": (0x00B7, 0x00D7, 0x2022, 0x2217, 0x2219, 0x22C5, 0x2715, 0x2716),
    "/": (0x00F7, 0x2044, 0x2215, 0x2797),
    "-": (0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0x2796, 0xFE63, 0xFF0D),
    "+": (0x2795, 0xFF0B),
    "(": (0x5B, 0x7B, 0xFF08, 0xFF3B),
    ")": (0x5D, 0x7D, 0xFF09, 0xFF3D),
    "=": (0xFF1D,),
    " ": (0x00A0, 0x2009, 0x200B, 0x202F, 0x2060),
    **{str(digit): (0xFF10 + digit,) for digit in range(10)},
}
"""Code points written for each ASCII sign: multiplication crosses and dots, division signs, dashes, wide forms."""
_TABLE = {point: sign for sign, points in _MEANING.items() for point in points}
_WORDS = (
    (re.compile(r"\\(?:times|cdot|ast|star|bullet)(?![A-Za-z])"), "*"),
    (re.compile(r"\\(?:div|slash)(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:left|right|bigl?|bigr?|Bigl?|Bigr?|displaystyle|quad|qquad)(?![A-Za-z])"), " "),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|operatorname)\s*\{\s*\}"), " "),
    (re.compile(r"\\[()\[\],;:! ]|\\\\|[$`]"), " "),
    (re.compile(r"(?<=[\d)\s])[xX](?=[\d(\s])"), "*"),
)
_FRAC = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_TOKEN = re.compile(r"\s*(?:(\d+)|([-+*/()]))")


class ExpressionError(ValueError):
    """The text is not an expression of the game; the message says why."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """An expression's exact value and the integers it uses, in order of appearance."""

    value: Fraction
    numbers: tuple[int, ...]


def normalise(text: str) -> str:
    r"""Write Unicode and LaTeX signs in ASCII; ``\frac{a}{b}`` becomes ``((a)/(b))``."""
    for _ in range(MAX_DEPTH):
        text, changed = _FRAC.subn(r"((\1)/(\2))", text)
        if not changed:
            break
    for pattern, plain in _WORDS:
        text = pattern.sub(plain, text)
    return text.translate(_TABLE).strip()


def parse(text: str, *, unary_minus: bool = False, juxtaposition: bool = False) -> Parsed:
    """Parse a normalised expression.

    ``unary_minus`` accepts a sign before a factor, ``juxtaposition`` reads ``(3+4)(5)`` as a product. Raises
    ``ExpressionError`` for anything else, division by zero and expressions over the size limits.
    """
    reader = _Reader(_tokens(text), unary_minus, juxtaposition)
    value = reader.sum(0)
    if reader.at < len(reader.tokens):
        raise ExpressionError(f"unexpected '{reader.tokens[reader.at]}'")
    return Parsed(value, tuple(reader.numbers))


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_CHARS:
        raise ExpressionError("expression too long")
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise ExpressionError(f"unexpected '{text[at:].strip()[:1]}'")
        tokens.append(found[1] or found[2])
        at = found.end()
    if not tokens:
        raise ExpressionError("empty expression")
    if len(tokens) > MAX_TOKENS:
        raise ExpressionError("too many tokens")
    return tokens


class _Reader:
    """Recursive descent: sum of products of factors."""

    def __init__(self, tokens: list[str], unary_minus: bool, juxtaposition: bool) -> None:
        self.tokens, self.at = tokens, 0
        self.unary_minus, self.juxtaposition = unary_minus, juxtaposition
        self.numbers: list[int] = []

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def sum(self, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise ExpressionError("nested too deeply")
        value = self.product(depth)
        while self.peek() in ("+", "-"):
            value = value + self.product(depth) if self.take() == "+" else value - self.product(depth)
        return value

    def product(self, depth: int) -> Fraction:
        value = self.factor(depth)
        while True:
            sign = self.peek()
            if sign == "(" and self.juxtaposition:
                value *= self.factor(depth)
            elif sign in ("*", "/"):
                self.take()
                value = self.apply(value, sign, self.factor(depth))
            else:
                return value

    def apply(self, left: Fraction, sign: str, right: Fraction) -> Fraction:
        if sign == "*":
            return left * right
        if right == 0:
            raise ExpressionError("division by zero")
        return left / right

    def factor(self, depth: int) -> Fraction:
        token = self.take()
        if token == "(":
            value = self.sum(depth + 1)
            if self.take() != ")":
                raise ExpressionError("parenthesis not closed")
            return value
        if token == "-" and self.unary_minus and depth < MAX_DEPTH:
            return -self.factor(depth + 1)
        if not token.isdigit():
            raise ExpressionError(f"number expected, '{token}' found" if token else "expression ends too early")
        if len(token) > MAX_DIGITS:
            raise ExpressionError("number too long")
        self.numbers.append(int(token))
        return Fraction(int(token))
