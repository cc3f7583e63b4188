r"""The type of an answer and its parts: what stands between brackets, commas, signs and rows.

Works on one canonical spelling (``tidy``), never looks inside a leaf, and decides nothing about equality.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_PARTS = 40
MAX_DEPTH = 8

_MATRIX = re.compile(r"\\begin\{([pbvBV]?(?:small)?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", re.DOTALL)
_BASE = re.compile(r"(-?[0-9A-Fa-f]*\d[0-9A-Fa-f]*)_(?:\{(?:\\text\{)?(\d{1,2}|[a-z]+)\}?\}|(\d))")
_CONNECTIVE = re.compile(
    r"\\text\{(?:or|and|,|;|,or|,and)\}|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|;|\\(?:lor|vee|wedge)(?![A-Za-z])"
)
_RELATION = re.compile(
    r"(?<![<>!\\])=|<|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z])|\\in(?![A-Za-z])|\\approx"
)
NAME = re.compile(
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
        len(items) == 2 and NAME.fullmatch(items[0]) is None and ":" in items[0]
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
    if len(sides) < 2:  # also "= 5", the end of a chain whose start was cut
        return Part("scalar", (text.removeprefix("=").removeprefix(r"\approx").strip(),))
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
    """Split at separators outside brackets and LaTeX groups; more parts than ``MAX_PARTS`` stay one."""
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
    filled = tuple(part.strip() for part in parts if part.strip())
    return filled if len(filled) <= MAX_PARTS else (text,)


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


def last_side(pred: Part, *, gold_kind: str) -> str:
    """Return what an equation says the answer is: its last side, unless it is a relation between letters and numbers.

    ``x = 5``, ``a + b = 5``, ``f(2) = 5`` and ``8 + 15 = 23`` state a value; ``2x + 3 = 5`` states something else.
    """
    before = "".join(pred.parts[:-1])
    letters = re.sub(r"\\[A-Za-z]+|[A-Za-z]+(?:_\w|_\{\w+\})?\(", "", before)
    relation = gold_kind == "scalar" and re.search(r"\d", letters) and re.search(r"[A-Za-z]", letters)
    return "=".join(pred.parts) if relation and not NAME.fullmatch(pred.parts[0]) else pred.parts[-1]


def interval(part: Part) -> Part | None:
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
