r"""Whether a gold can be read at all: judged from the gold alone, so that no answer decides which items count.

A gold is text, or every part of it (members of a list, sides of an equation, entries of a matrix) is read by the exact
normal form or by math-verify. What the size guard keeps from sympy, and what math-verify needs too long for, counts as
readable: an answer written the same way is still equal to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from dare_eval.scoring.math import guard, ring, tidy
from dare_eval.scoring.math.pool import POOL, Verdict
from dare_eval.scoring.math.shapes import MAX_DEPTH, NAME, Part, interval, read


class _Undecided(Exception):
    """The worker did not answer in time; not kept, the next item asks again."""


def is_readable(gold: str, ask: Callable[[str], Verdict] = POOL.parses) -> bool:
    """Tell whether a cleaned gold can be compared with anything; never raises, asks the worker once per gold."""
    try:
        return _cached(gold, ask)
    except _Undecided:
        return True


@lru_cache(maxsize=8192)
def _cached(gold: str, ask: Callable[[str], Verdict]) -> bool:
    return _readable(gold, ask, 0)


def _readable(gold: str, ask: Callable[[str], Verdict], depth: int) -> bool:
    if depth > MAX_DEPTH or tidy.plain_text(tidy.spell(gold)) is not None:
        return True
    text = tidy.canonical(gold).text
    part = read(text)
    if part.kind == "base":
        return True
    if part.kind == "equation" and (len(part.parts) == 2 and NAME.fullmatch(part.parts[0]) is None):
        return _reads("=".join(part.parts), f"({part.parts[0]})-({part.parts[1]})", ask)
    if part.kind == "scalar":
        return bool(part.parts[0]) and _reads(part.parts[0], part.parts[0], ask)
    return all(_readable(piece, ask, depth + 1) for piece in _pieces(part))


def _pieces(part: Part) -> tuple[str, ...]:
    """Return the parts that an answer is compared with: of a named value the value, of an inequality its bounds."""
    if part.kind == "equation" and NAME.fullmatch(part.parts[0]):
        return part.parts[-1:]
    bounds = interval(part)
    return part.parts if bounds is None else bounds.parts


def _reads(whole: str, form: str, ask: Callable[[str], Verdict]) -> bool:
    try:
        ring.parse(form)
    except ring.Unsupported:
        if guard.refusal(whole) is not None:
            return True
        verdict = ask(whole)
        if verdict.why in ("timeout", "died"):
            raise _Undecided from None
        return verdict.equal
    return True
