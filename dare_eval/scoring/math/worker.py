"""The process that runs math-verify and sympy: one request per line on standard input, one verdict per line out.

Started by ``pool``; it imports the libraries once, then answers until its input closes. It may be killed at any
moment: it owns no state, and it imports nothing of this package. Comparison is exact or relative, never by an absolute
tolerance, and any failure to parse or decide is "not equal".

    python -P dare_eval/scoring/math/worker.py        # speaks JSON lines
"""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import sys
from typing import IO, Any

MEMORY_BYTES = 3 << 30
DIGITS = 30
POINTS = ((3, 7), (11, 5), (13, 17))
"""Rational sample points for letters; a difference that vanishes at all of them to ``DIGITS`` digits is zero."""


def main() -> None:
    """Answer requests until standard input closes."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        import math_verify  # noqa: F401 - imported here so that requests do not pay for it

        serve(sys.stdin, out)


def serve(requests: IO[str], out: IO[str]) -> None:
    """Answer each request line; the first line out says that the libraries are loaded."""
    _reply(out, {"ready": True})
    for line in requests:
        request = json.loads(line)
        _reply(out, decide(request["gold"], request["pred"], request["kind"], request["rounded"]))


def _reply(out: IO[str], message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def decide(gold: str, pred: str, kind: str, rounded: bool) -> dict[str, Any]:
    """Return ``{"equal": bool, "why": str}`` for two spelt answers.

    ``kind`` is ``scalar``, ``matrix``, ``equation``, or ``gold`` (whether the gold can be read; there is no answer);
    ``rounded`` lets a correctly rounded decimal count.
    """
    try:
        gold_value = _parse(gold)
        if gold_value is None or kind == "gold":
            return {"equal": gold_value is not None, "why": "gold not parsed" if gold_value is None else "gold parsed"}
        pred_value = _parse(pred)
        if pred_value is None:
            return {"equal": False, "why": "answer not parsed"}
        return {"equal": bool(_compare(gold_value, pred_value, kind, rounded)), "why": "compared"}
    except Exception as error:  # sympy raises anything; what is undecided is reported as such and is not equal
        return {"equal": False, "why": f"undecided: {type(error).__name__}"}


def _compare(gold: Any, pred: Any, kind: str, rounded: bool) -> bool:
    if kind == "equation":
        return _same_equation(gold, pred)
    return _same_matrix(gold, pred) if kind == "matrix" else _same(gold, pred, rounded)


def _parse(latex: str) -> Any:
    """Parse one LaTeX answer with math-verify; decimals become exact rationals."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse
    from sympy import Basic, Float, I, MatrixBase, nsimplify

    found = parse(
        f"${latex}$",
        extraction_config=[LatexExtractionConfig(), ExprExtractionConfig()],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    if not found or not isinstance(found[0], Basic | MatrixBase):
        return None
    value = found[0].subs({letter: I for letter in found[0].free_symbols if letter.name == "i"})
    return nsimplify(value, rational=True) if value.has(Float) else value


def _same(gold: Any, pred: Any, rounded: bool) -> bool:
    from sympy import Expr

    if isinstance(gold, Expr) and isinstance(pred, Expr):
        return _vanishes(gold, pred) or (rounded and _rounds(gold, pred))
    from math_verify import verify

    return type(gold) is type(pred) and bool(verify(gold, pred, timeout_seconds=None, strict=True))


def _vanishes(gold: Any, pred: Any) -> bool:
    """Tell whether two expressions are equal: at sample points to ``DIGITS`` digits relative, then symbolically."""
    from sympy import simplify

    gold, pred = gold.doit(), pred.doit()
    if gold == pred:
        return True
    letters = sorted(gold.free_symbols | pred.free_symbols, key=str)
    if gold.free_symbols != pred.free_symbols and simplify(gold - pred) != 0:
        return False
    decided = 0
    for offset, (top, bottom) in enumerate(POINTS if letters else POINTS[:1]):
        close = _close_at(gold, pred, letters, offset, top, bottom)
        if close is False:
            return False
        decided += close is True
    return decided > 0 or simplify(gold - pred) == 0


def _close_at(gold: Any, pred: Any, letters: list[Any], offset: int, top: int, bottom: int) -> bool | None:
    """Compare at one point; None when a value there is no finite number."""
    from sympy import Rational

    point = {letter: Rational(top + 2 * index, bottom + offset) for index, letter in enumerate(letters)}
    left, right = (side.subs(point).evalf(DIGITS + 10, maxn=2000) for side in (gold, pred))
    if not all(side.is_number and side.is_finite for side in (left, right)):
        return None
    size = max(abs(left), abs(right))
    return bool(size == 0 or abs(left - right) <= size * 10 ** (-DIGITS))


def _rounds(gold: Any, pred: Any) -> bool:
    """Tell whether ``pred`` is a decimal of at least three significant digits to which ``gold`` rounds."""
    if not (pred.is_Rational and gold.is_number and gold.is_real):
        return False
    places = next((n for n in range(1, 16) if (pred * 10**n).is_Integer), None)
    if places is None or len(str(abs(int(pred * 10**places)))) < 3:
        return False
    return bool(2 * abs(pred - gold.evalf(DIGITS)) * 10**places <= 1)


def _same_matrix(gold: Any, pred: Any) -> bool:
    left, right = gold.doit(), pred.doit()
    return bool(left.shape == right.shape and all(_vanishes(a, b) for a, b in zip(left, right, strict=True)))


def _same_equation(gold: Any, pred: Any) -> bool:
    """Tell whether two equations have the same solutions: one is a non-zero constant times the other."""
    from sympy import Eq, simplify

    if not (isinstance(gold, Eq) and isinstance(pred, Eq)) or gold.free_symbols != pred.free_symbols:
        return False
    left, right = gold.lhs - gold.rhs, pred.lhs - pred.rhs
    if simplify(left) == 0 or simplify(right) == 0:
        return False
    ratio = simplify(left / right)
    return not ratio.free_symbols and ratio.is_finite is True and ratio != 0


if __name__ == "__main__":
    main()
