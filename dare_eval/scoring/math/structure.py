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
from typing import NamedTuple

from dare_eval.scoring import numbers
from dare_eval.scoring.math import guard, ring, tidy
from dare_eval.scoring.math.pool import POOL, Verdict
from dare_eval.scoring.policy import Policy

MAX_PARTS = 40
MAX_DEPTH = 8

_MATRIX = re.compile(r"\\begin\{([pbvBV]?(?:small)?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", re.DOTALL)
_BASE = re.compile(r"([0-9A-Fa-f]*\d[0-9A-Fa-f]*)_(?:\{(?:\\text\{)?(\d{1,2}|[a-z]+)\}?\}|(\d))")
_CONNECTIVE = re.compile(
    r"\\text\{(?:or|and|,|;|,or|,and)\}|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|;|\\(?:lor|vee|wedge)(?![A-Za-z])"
)
_RELATION = re.compile(
    r"(?<![<>!\\])=|<|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z])|\\in(?![A-Za-z])|\\approx"
)
_NAME = re.compile(
    r"(?:\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\([A-Za-z0-9,]*\))?|\((?:[A-Za-z],)+[A-Za-z]\)|\|?\\text\{[^{}]*\}\|?"
    r"|\\angle ?[A-Z]{1,3})'?"
)
_OPEN, _CLOSE = "([", ")]"
_SIDES = {"<": ("(", ")"), r"\le": ("[", "]")}
_FLIP = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}


class Part(NamedTuple):
    """An answer or part of one: its type, its parts or text, and what else identifies it (brackets, base, rows)."""

    kind: str
    parts: tuple[str, ...]
    extra: str = ""


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
            return gold_words == _words(pred)
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
            return self.equation(left, right, depth)
        if right.kind == "equation":
            right = read(_last_side(right, gold_kind=left.kind))
        if "inequality" in (left.kind, right.kind):
            return _interval(left) is not None and self.brackets(_interval(left), _interval(right), depth)
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

    def equation(self, gold: Part, pred: Part, depth: int) -> bool:
        """Compare equations as equations; ``x = 5`` and ``5`` are the same answer."""
        if pred.kind != "equation":
            return _NAME.fullmatch(gold.parts[0]) is not None and self.equal(
                gold.parts[-1], "".join(_text(pred)), depth
            )
        if (
            gold.parts[0] == pred.parts[0]
            and len(gold.parts) == len(pred.parts) == 2
            and _NAME.fullmatch(gold.parts[0])
        ):
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


def read(text: str) -> Part:
    """Return the type and parts of a canonical answer."""
    text = _peel(text)
    matrix = _MATRIX.fullmatch(text)
    if matrix is not None:
        rows = [row.split("&") for row in re.split(r"\\\\(?:\[[^\]]*\])?", matrix[2]) if row]
        return Part(
            "matrix", tuple(cell for row in rows for cell in row), f"{len(rows)}x{max(map(len, rows), default=0)}"
        )
    if len(unions := _split(text, re.compile(r"\\cup(?![A-Za-z])"))) > 1:
        return Part("union", unions)
    if text.startswith(r"\{") and text.endswith(r"\}") and r"\}" not in text[2:-2]:
        return Part("set", tuple(item for part in _split_list(text[2:-2]) for item in _expand(part)))
    if text[:1] in _OPEN and text[-1:] in _CLOSE and _closes_at_end(text):
        items = _split(text[1:-1], re.compile(","))
        if len(items) > 1:
            return Part("bracket", items, text[0] + text[-1])
    if len(items := _split_list(text)) > 1 and not (
        len(items) == 2 and _NAME.fullmatch(items[0]) is None and ":" in items[0]
    ):
        return Part("list", tuple(item for part in items for item in _expand(part)))
    if len(pair := _expand(text)) > 1:
        return Part("list", pair)
    based = _BASE.fullmatch(text)
    if based is not None:
        return Part("base", (based[1],), _base_name(based[2] or based[3]))
    if len(ratio := _split(text, re.compile(":"))) > 1:
        return Part("ratio", ratio)
    return _relation(text)


def _relation(text: str) -> Part:
    sides = _split(text, _RELATION)
    if len(sides) == 1:
        return Part("scalar", (text,))
    signs = tuple(found[0] for found in _RELATION.finditer(text))
    if all(sign in ("=", r"\approx") for sign in signs):
        return Part("equation", sides)
    if signs == (r"\in",):
        return read(sides[1])
    return Part("inequality", sides, " ".join(signs))


def _peel(text: str) -> str:
    """Remove brackets and braces around the whole of a single value."""
    for _ in range(MAX_DEPTH):
        if (
            text[:1] in "({"
            and text[-1:] in ")}"
            and _closes_at_end(text)
            and len(_split(text[1:-1], re.compile(","))) == 1
        ):
            text = text[1:-1]
        else:
            break
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for index, char in enumerate(text):
        if char in "([{" and (index == 0 or text[index - 1] != "\\"):
            depth += 1
        elif char in ")]}" and text[index - 1] != "\\":
            depth -= 1
            if depth == 0:
                return index == len(text) - 1
    return False


def _split(text: str, separator: re.Pattern[str]) -> tuple[str, ...]:
    """Split at separators outside brackets and LaTeX groups."""
    parts, start, depth, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        found = separator.match(text, at) if depth <= 0 else None
        if found is not None and found.end() > at:
            parts.append(text[start:at])
            at = start = found.end()
            continue
        if char == "\\" and at + 1 < len(text) and not text[at + 1].isalpha():
            depth += (text[at + 1] == "{") - (text[at + 1] == "}")
            at += 2
            continue
        depth += (char in "([{") - (char in ")]}")
        at += 1
    parts.append(text[start:])
    return tuple(part.strip() for part in parts if part.strip())[:MAX_PARTS]


def _split_list(text: str) -> tuple[str, ...]:
    return _split(_CONNECTIVE.sub(",", text), re.compile(","))


def _expand(text: str) -> tuple[str, ...]:
    r"""Return the two values of ``a \pm b``; any other text alone."""
    if text.count(r"\pm") + text.count(r"\mp") != 1 or _RELATION.search(text):
        return (text,)
    return re.sub(r"\\[pm][pm](?![A-Za-z])", "+", text).lstrip("+"), re.sub(r"\\[pm][pm](?![A-Za-z])", "-", text)


def _base_name(base: str) -> str:
    words = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return str(words.index(base) + 2) if base in words else base


def _text(part: Part) -> tuple[str, ...]:
    if part.kind == "bracket":
        return part.extra[0], ",".join(part.parts), part.extra[1]
    if part.kind in ("list", "set"):
        return (",".join(part.parts),)
    return part.parts


def _last_side(pred: Part, *, gold_kind: str) -> str:
    """Return what an equation says the answer is: its last side, unless it is a relation between letters and numbers.

    ``x = 5``, ``a + b = 5``, ``f(2) = 5`` and ``8 + 15 = 23`` state a value; ``2x + 3 = 5`` states something else.
    """
    before = "".join(pred.parts[:-1])
    letters = re.sub(r"\\[A-Za-z]+|[A-Za-z]+(?:_\w|_\{\w+\})?\(", "", before)
    relation = gold_kind == "scalar" and re.search(r"\d", letters) and re.search(r"[A-Za-z]", letters)
    return "=".join(pred.parts) if relation and not _NAME.fullmatch(pred.parts[0]) else pred.parts[-1]


def _interval(part: Part) -> Part | None:
    """Return an inequality in one letter as the interval it describes; a bracket as it is."""
    if part.kind == "bracket" and len(part.parts) == 2:
        return part
    if part.kind != "inequality":
        return None
    signs, sides = part.extra.split(" "), list(part.parts)
    if all(sign in (">", r"\ge") for sign in signs):
        signs, sides = [_FLIP[sign] for sign in reversed(signs)], sides[::-1]
    if any(sign not in _SIDES for sign in signs) or len(sides) != len(signs) + 1:
        return None
    if len(sides) == 2:
        below = re.fullmatch(r"[A-Za-z]", sides[0]) is not None
        if below == (re.fullmatch(r"[A-Za-z]", sides[1]) is not None):
            return None
        bound = _SIDES[signs[0]]
        return (
            Part("bracket", (r"-\infty", sides[1]), "(" + bound[1])
            if below
            else Part("bracket", (sides[0], r"\infty"), bound[0] + ")")
        )
    if len(sides) == 3 and re.fullmatch(r"[A-Za-z]", sides[1]):
        return Part("bracket", (sides[0], sides[2]), _SIDES[signs[0]][0] + _SIDES[signs[1]][1])
    return None


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
