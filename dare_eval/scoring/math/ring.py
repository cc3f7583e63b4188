r"""Exact normal form of ordinary answers: rational numbers, square roots, pi, i and letters under + - * / and powers.

A value is a sum of monomials ``coefficient * sqrt(r) * i^k * letters``, with rational coefficients and square-free
``r``. Square roots of different square-free integers are linearly independent over the rationals, and letters and pi
are independent of them, so two values are equal exactly when their forms are: both answers, yes and no, are proofs.
What the form cannot express (functions, factorials, nested roots, quotients by sums) raises ``Unsupported`` and is
sympy's work.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

MAX_TERMS = 150
MAX_POWER = 512
MAX_BITS = 2000
MAX_FACTORIAL = 200
MAX_RADICAND = 10**9
MAX_DEPTH = 30

Monomial = tuple[int, int, tuple[tuple[str, int], ...]]
"""(square-free radicand, exponent of i, letters with exponents)."""
Form = dict[Monomial, Fraction]

ONE: Monomial = (1, 0, ())
_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\[A-Za-z]+)|([A-Za-z](?:_(?:\d|[a-z]|\{\w{1,6}\}))?)|([-+*/^(){}\[\]!]))"
)


_WORD = re.compile(r"(?<![\\A-Za-z])(?:[A-Za-z]{3,}|ln)(?![A-Za-z])")


class Unsupported(ValueError):
    """The text is outside the normal form."""


def parse(latex: str) -> Form:
    """Return the normal form of a spelt answer (see ``tidy``); raises ``Unsupported``."""
    return dict(_parsed(latex))


@lru_cache(maxsize=8192)
def _parsed(latex: str) -> tuple[tuple[Monomial, Fraction], ...]:
    reader = _Reader(_tokens(latex))
    form = reader.sum(0)
    if reader.at < len(reader.tokens):
        raise Unsupported(f"unexpected {reader.tokens[reader.at]}")
    return tuple(form.items())


def constant(form: Form) -> Fraction | None:
    """Return the rational value of a form, or None when it is not a rational number."""
    if not form:
        return Fraction(0)
    return form[ONE] if len(form) == 1 and ONE in form else None


def approximate(form: Form) -> float | None:
    """Return a float for a real number without letters (pi allowed), else None."""
    total = 0.0
    for (radicand, imaginary, letters), coefficient in form.items():
        if imaginary or any(name != "pi" for name, _ in letters):
            return None
        total += float(coefficient) * math.sqrt(radicand) * math.pi ** sum(power for _, power in letters)
    return total


def _tokens(latex: str) -> list[str]:
    tokens, at = [], 0
    latex = latex.rstrip()
    if _WORD.search(latex):
        raise Unsupported("a word, or a function written out")
    while at < len(latex):
        found = _TOKEN.match(latex, at)
        if found is None:
            raise Unsupported(f"unexpected {latex[at : at + 1]}")
        tokens.append(next(part for part in found.groups() if part))
        at = found.end()
    if not 0 < len(tokens) <= 4 * MAX_TERMS:
        raise Unsupported("empty or too long")
    return tokens


def _add(left: Form, right: Form, sign: int = 1) -> Form:
    total = dict(left)
    for monomial, coefficient in right.items():
        total[monomial] = total.get(monomial, Fraction(0)) + sign * coefficient
        if not total[monomial]:
            del total[monomial]
    return _checked(total)


def _multiply(left: Form, right: Form) -> Form:
    if len(left) * len(right) > MAX_TERMS * 4:
        raise Unsupported("too many terms")
    total: Form = {}
    for (radicand_a, imaginary_a, letters_a), coefficient_a in left.items():
        for (radicand_b, imaginary_b, letters_b), coefficient_b in right.items():
            shared = math.gcd(radicand_a, radicand_b)
            powers = dict(letters_a)
            for name, power in letters_b:
                powers[name] = powers.get(name, 0) + power
            letters = tuple(sorted((name, power) for name, power in powers.items() if power))
            sign = -1 if imaginary_a and imaginary_b else 1
            monomial = (radicand_a * radicand_b // shared**2, (imaginary_a + imaginary_b) % 2, letters)
            value = total.get(monomial, Fraction(0)) + sign * shared * coefficient_a * coefficient_b
            total[monomial] = value
    return _checked({monomial: value for monomial, value in total.items() if value})


def _checked(form: Form) -> Form:
    if len(form) > MAX_TERMS:
        raise Unsupported("too many terms")
    for (radicand, _, _), value in form.items():
        if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS or radicand > MAX_RADICAND:
            raise Unsupported("too large")
    return form


def _inverse(form: Form) -> Form:
    if len(form) != 1:
        raise Unsupported("quotient by a sum")
    ((radicand, imaginary, letters), coefficient), *_ = form.items()
    flipped = tuple((name, -power) for name, power in letters)
    sign = -1 if imaginary else 1
    return {(radicand, imaginary, flipped): Fraction(sign) / (coefficient * radicand)}


def _power(base: Form, exponent: Form) -> Form:
    value = constant(exponent)
    if value is None or abs(value) > MAX_POWER:
        raise Unsupported("exponent")
    if value == Fraction(1, 2):
        return _square_root(base)
    if value.denominator != 1:
        raise Unsupported("exponent")
    if value < 0:
        base, value = _inverse(base), -value
    result: Form = {ONE: Fraction(1)}
    for _ in range(value.numerator):
        result = _multiply(result, base)
    return result


def _small(form: Form) -> int:
    value = constant(form)
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        raise Unsupported("not a small integer")
    return value.numerator


def _factorial(form: Form) -> Form:
    return _checked({ONE: Fraction(math.factorial(_small(form)))})


def _square_root(form: Form) -> Form:
    value = constant(form)
    if value is None:
        raise Unsupported("root of a sum or letter")
    radicand = abs(value.numerator * value.denominator)
    if radicand > MAX_RADICAND:
        raise Unsupported("root too large")
    if radicand == 0:
        return {}
    outside, inside = _square_part(radicand)
    return {(inside, int(value < 0), ()): Fraction(outside, value.denominator)}


@lru_cache(maxsize=4096)
def _square_part(number: int) -> tuple[int, int]:
    """Return (a, b) with ``number = a*a*b`` and ``b`` square-free."""
    outside, inside, divisor = 1, 1, 2
    while divisor * divisor <= number:
        count = 0
        while number % divisor == 0:
            number, count = number // divisor, count + 1
        outside *= divisor ** (count // 2)
        inside *= divisor ** (count % 2)
        divisor += 1
    return outside, inside * number


class _Reader:
    r"""Recursive descent over LaTeX tokens; juxtaposition is a product, ``3\frac{1}{2}`` a mixed number."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unsupported(f"'{expected}' expected")
        self.at += 1
        return token

    def sum(self, depth: int) -> Form:
        if depth > MAX_DEPTH:
            raise Unsupported("nested too deeply")
        value = self.product(depth)
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            value = _add(value, self.product(depth), sign)
        return value

    def product(self, depth: int) -> Form:
        value = self.factor(depth)
        while True:
            token = self.peek()
            if token in ("*", r"\cdot", r"\times"):
                self.take()
                value = _multiply(value, self.factor(depth))
            elif token in ("/", r"\div"):
                self.take()
                value = _multiply(value, self.divisor(depth))
            elif token and token not in "+-)}]^":
                value = _multiply(value, self.factor(depth))
            else:
                return value

    def divisor(self, depth: int) -> Form:
        form = self.factor(depth)
        if not form:
            raise Unsupported("division by zero")
        return _inverse(form)

    def factor(self, depth: int) -> Form:
        if self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            if depth > MAX_DEPTH:
                raise Unsupported("nested too deeply")
            return _multiply({ONE: Fraction(sign)}, self.factor(depth + 1))
        base = self.base(depth)
        while self.peek() == "!":
            self.take()
            base = _factorial(base)
        if self.peek() == "^":
            self.take()
            return _power(base, self.exponent(depth))
        return base

    def exponent(self, depth: int) -> Form:
        if self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            return _multiply({ONE: Fraction(sign)}, self.base(depth))
        return self.base(depth)

    def base(self, depth: int) -> Form:
        token = self.take()
        if token[0].isdigit() or token[0] == ".":
            return self.number(token, depth)
        if token in ("(", "{", "["):
            value = self.sum(depth + 1)
            self.take({"(": ")", "{": "}", "[": "]"}[token])
            return value
        if token in _COMMANDS:
            return _COMMANDS[token](self, depth)
        if token[0].isalpha():
            return {(1, 1, ()): Fraction(1)} if token == "i" else {(1, 0, ((token, 1),)): Fraction(1)}
        raise Unsupported(f"unexpected {token}")

    def number(self, token: str, depth: int) -> Form:
        value = Fraction(token) if len(token) <= 200 else None
        if value is None or self.peek()[:1].isdigit() or self.peek()[:1] == ".":
            raise Unsupported("number")
        form = {ONE: value} if value else {}
        if self.peek() == r"\frac" and "." not in token and self._pure_fraction():
            form = _add(form, self.base(depth))
        return form

    def _pure_fraction(self) -> bool:
        shape = [self.peek(offset) for offset in range(1, 7)]
        return shape[0] == shape[3] == "{" and shape[2] == shape[5] == "}" and shape[1].isdigit() and shape[4].isdigit()

    def group(self, depth: int) -> Form:
        self.take("{")
        value = self.sum(depth + 1)
        self.take("}")
        return value

    def fraction(self, depth: int) -> Form:
        top, bottom = self.group(depth), self.group(depth)
        if not bottom:
            raise Unsupported("division by zero")
        return _multiply(top, _inverse(bottom))

    def root(self, depth: int) -> Form:
        if self.peek() == "[":
            raise Unsupported("higher root")
        return _square_root(self.group(depth))

    def binomial(self, depth: int) -> Form:
        top, bottom = (_small(self.group(depth)) for _ in range(2))
        return _checked({ONE: Fraction(math.comb(top, bottom))} if bottom <= top else {})

    def pi(self, _depth: int) -> Form:
        return {(1, 0, (("pi", 1),)): Fraction(1)}

    def greek(self, _depth: int) -> Form:
        return {(1, 0, ((self.tokens[self.at - 1], 1),)): Fraction(1)}


_GREEK = ("alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "phi", "omega", "sigma", "rho", "tau", "infty")
_COMMANDS: dict[str, Callable[[_Reader, int], Form]] = {
    r"\frac": _Reader.fraction,
    r"\sqrt": _Reader.root,
    r"\binom": _Reader.binomial,
    r"\pi": _Reader.pi,
    **{f"\\{name}": _Reader.greek for name in _GREEK},
}
