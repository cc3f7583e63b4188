r"""Typed comparison of answers: the gold's type decides, then parts are compared with parts.

Types: text, tuple or interval (bracketed, ordered, the brackets count), union of intervals, set, list (top-level
commas, "and", "or"; unordered), plus-minus (a list of two), matrix, number in a base, ratio or clock time, equation,
inequality, scalar.
Leaves go through string equality, the exact normal form of ``ring``, and last the worker with math-verify and sympy.
Whatever cannot be decided is not equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dare_eval.scoring import numbers
from dare_eval.scoring.math import guard, ring, tidy
from dare_eval.scoring.math.pool import POOL, Verdict
from dare_eval.scoring.math.shapes import MAX_DEPTH, NAME, Part, interval, last_side, read
from dare_eval.scoring.policy import Policy


@dataclass(slots=True)
class Comparison:
    """One comparison under way: the policy, and how the leaves were decided (for the detail row)."""

    policy: Policy
    limit_s: float
    ask: Callable[..., Verdict] = POOL.equal
    path: list[str] = field(default_factory=list)

    def equal(self, gold: str, pred: str, depth: int = 0) -> bool:
        """Tell whether two answers (as written, or parts of one) are equal."""
        if depth > MAX_DEPTH:
            return False
        gold_words = tidy.plain_text(tidy.spell(gold))
        if gold_words is not None:
            self.path.append("text")
            if gold_words == _words(pred):
                return True
            if "\\" in gold or len(gold_words) > 3:
                return False  # otherwise letters may be a product or a segment: xy, AB
        left, right = tidy.canonical(gold), tidy.canonical(pred)
        if not right.text or not self.same_unit(left, right):
            return False
        if left.text == right.text:
            self.path.append("string")
            return True
        return self.typed(left.text, right.text, depth + 1) or self.as_ratio(left, right, depth + 1)

    def same_unit(self, gold: tidy.Canonical, pred: tidy.Canonical) -> bool:
        """Compare units and percent signs as the policy says; two different known units never agree."""
        if gold.unit and pred.unit and gold.unit != pred.unit and gold.unit.split("^")[0] != pred.unit.split("^")[0]:
            return False
        if self.policy.units == "strict" and gold.unit != pred.unit:
            return False
        return self.policy.percent != "strict" or gold.percent == pred.percent

    def as_ratio(self, gold: tidy.Canonical, pred: tidy.Canonical, depth: int) -> bool:
        """Under ``percent=ratio`` compare 0.5 with 50 %."""
        if self.policy.percent != "ratio" or gold.percent == pred.percent:
            return False
        sides = [f"({side.text})/100" if side.percent else side.text for side in (gold, pred)]
        return self.typed(sides[0], sides[1], depth)

    def typed(self, gold: str, pred: str, depth: int) -> bool:
        """Compare two canonical answers by the type of the gold."""
        left, right = read(gold), read(pred)
        if left.kind == "equation":
            return self.equation(left, right, pred, depth)
        if right.kind == "equation":
            right = read(last_side(right, gold_kind=left.kind))
        if "inequality" in (left.kind, right.kind):
            return interval(left) is not None and self.brackets(interval(left), interval(right), depth)
        if left.kind in ("list", "set"):
            return right.kind in ("list", "set") and self.unordered(left, right, depth)
        if left.kind == "union":
            return right.kind == "union" and self.unordered(left, right, depth)
        if left.kind == "bracket":
            return self.brackets(left, right, depth)
        if left.kind == "matrix" and right.kind != "matrix":
            return r"\begin" in pred and self.slow(gold, pred, kind="matrix")
        if left.kind == "scalar" and right.kind == "set" and len(right.parts) == 1:
            right = read(right.parts[0])
        if left.kind == "base" or right.kind == "base":
            return self.based(left, right)
        if left.kind != right.kind or left.extra != right.extra or len(left.parts) != len(right.parts):
            return False
        if left.kind == "scalar":
            return self.scalar(left.parts[0], right.parts[0])
        return all(self.equal(a, b, depth) for a, b in zip(left.parts, right.parts, strict=True))

    def unordered(self, gold: Part, pred: Part, depth: int) -> bool:
        """Match the parts one to one in any order; every pair of equal parts is interchangeable, so greedily."""
        left, right = list(gold.parts), list(pred.parts)
        if "set" in (gold.kind, pred.kind):
            left, right = list(dict.fromkeys(left)), list(dict.fromkeys(right))
        if len(left) != len(right):
            return False
        for item in left:
            match = next((other for other in right if self.equal(item, other, depth)), None)
            if match is None:
                return False
            right.remove(match)
        return True

    def brackets(self, gold: Part | None, pred: Part | None, depth: int) -> bool:
        """Compare tuples and intervals: same brackets, same order; a bare list may stand for a tuple."""
        if gold is None or pred is None or len(gold.parts) != len(pred.parts):
            return False
        bare = pred.kind == "list" and gold.extra == "()"
        if not bare and (pred.kind != "bracket" or pred.extra != gold.extra):
            return False
        return all(self.equal(a, b, depth) for a, b in zip(gold.parts, pred.parts, strict=True))

    def based(self, gold: Part, pred: Part) -> bool:
        """Compare numbers in a base digit by digit; a base that is left out counts as a left-out unit."""
        self.path.append("base")
        optional = self.policy.units == "optional" and "scalar" in (gold.kind, pred.kind)
        same = gold.parts[0].lstrip("0").lower() == pred.parts[0].lstrip("0").lower()
        return same and (optional or gold.extra == pred.extra)

    def equation(self, gold: Part, pred: Part, said: str, depth: int) -> bool:
        """Compare equations as equations; ``x = 5`` and ``5`` are the same answer (``said`` is all of ``pred``)."""
        if pred.kind != "equation":
            return NAME.fullmatch(gold.parts[0]) is not None and self.equal(gold.parts[-1], said, depth)
        if gold.parts[0] == pred.parts[0] and len(gold.parts) == len(pred.parts) == 2 and NAME.fullmatch(gold.parts[0]):
            return self.equal(gold.parts[1], pred.parts[1], depth)
        if len(gold.parts) != 2 or len(pred.parts) != 2:
            return False
        try:
            return _proportional(*(_difference(part) for part in (gold, pred)))
        except ring.Unsupported:
            return self.slow("=".join(gold.parts), "=".join(pred.parts), kind="equation")

    def scalar(self, gold: str, pred: str) -> bool:
        """Compare two scalars: normal form first, then the worker."""
        if gold == pred:
            self.path.append("string")
            return True
        try:
            left = ring.parse(gold)
        except ring.Unsupported:
            return self.slow(gold, pred)
        try:
            right = ring.parse(pred)
        except ring.Unsupported:
            return self.slow(gold, pred)
        self.path.append("exact")
        return left == right or (self.policy.decimals == "rounded" and _rounds(left, pred, right))

    def slow(self, gold: str, pred: str, *, kind: str = "scalar") -> bool:
        """Ask the worker, unless size or prose says that there is nothing to ask."""
        if (
            re.search(r"(?<![\\A-Za-z])[A-Za-z]{5,}", re.sub(r"\\(?:begin|end)\{\w+\}|\\[A-Za-z]+", " ", pred))
            or len(pred) > 6 * len(gold) + 120
        ):
            self.path.append("prose")
            return False
        why = guard.refusal(gold) or guard.refusal(pred)
        if why is not None:
            self.path.append(f"refused: {why}")
            return False
        verdict = self.ask(gold, pred, kind=kind, rounded=self.policy.decimals == "rounded", limit_s=self.limit_s)
        self.path.append(f"sympy: {verdict.why}")
        return verdict.equal


def _words(pred: str) -> str | None:
    spelt = tidy.spell(pred)
    words = tidy.plain_text(spelt)
    return words if words is not None else (spelt.strip("() ").lower() or None)


def _difference(part: Part) -> ring.Form:
    return ring.parse(f"({part.parts[0]})-({part.parts[1]})")


def _proportional(left: ring.Form, right: ring.Form) -> bool:
    """Tell whether two forms, set to zero, say the same: neither is zero, one is a rational multiple of the other."""
    if not left or left.keys() != right.keys():
        return False
    return len({left[monomial] / right[monomial] for monomial in left}) == 1


def _rounds(gold: ring.Form, shown: str, pred: ring.Form) -> bool:
    value, exact = ring.constant(pred), ring.constant(gold)
    if value is None:
        return False
    if exact is not None:
        return numbers.rounds_to(shown, value, exact)
    close = ring.approximate(gold)
    return close is not None and numbers.rounds_to(shown, value, type(value)(close))
