r"""Boxes: ``\boxed{...}`` and ``\fbox{...}`` found by a balanced-brace scan, never by a regular expression.

A box that the text ends in before its brace closes is reported as open; whether it counts is the caller's policy. A box
whose brace is missing though something else ends it (a closing tag, the end of its formula, ``>`` after a number) was
not cut, so it is closed there.
``\boxed 7`` without braces is TeX for a box around the next token and is read so when that token is a digit.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMAND = re.compile(r"\\(?:d?f?boxed|fbox|framebox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BARE = re.compile(r"[+-]?\d+(?:\.\d+)?")
_SEPARATOR = re.compile(
    r"(?:[\s,;$.&]|\\[()\[\],;]|\\(?:q?quad|text|mathrm)\b|\{\s*(?:and|or)?\s*\}|\b(?:and|or)\b|\*\*)*"
)
_LOST_BRACE = re.compile(
    r"(\s*\$?(?:[^<>$\\\n]|\\[^)\]\n]|<(?![/A-Za-z])){1,200}?)(?:\s*</[A-Za-z]|(\\[)\]])|(\$)|(?<=\d)[ \t]*(>))"
)
_LONE_NUMBER = re.compile(r"\s*(?:\\?\$)?-?[\d,]*\.?\d+\s*")
MAX_OPEN = 1000
"""Characters kept of a box that never closes."""


class Box(NamedTuple):
    """One box: its content, where the command starts, where it ends, and whether its brace was closed."""

    text: str
    start: int
    end: int
    closed: bool
    lost_brace: bool = False
    """Closed by something other than its brace."""


def brace_pairs(text: str) -> dict[int, int]:
    """Map each opening brace to the one that closes it, in one pass; unclosed ones are absent."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACE.finditer(text):
        if found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            pairs[opened.pop()] = found.start()
    return pairs


def boxes(text: str) -> list[Box]:
    """Return every outermost box of ``text`` in order; empty boxes and a bare command are left out."""
    if "box" not in text:
        return []
    commands = list(_COMMAND.finditer(text))
    pairs = brace_pairs(text) if commands else {}
    found: list[Box] = []
    after = 0
    for command in commands:
        box = _read(text, command, pairs) if command.start() >= after else None
        if box is not None:
            after = box.end if box.closed else after
            if box.text.strip():
                found.append(box)
    return found


def _read(text: str, command: re.Match[str], pairs: dict[int, int]) -> Box | None:
    at = command.end()
    if at < len(text) and text[at] == "{":
        if at not in pairs:
            ended = _without_brace(text, command, at)
            return ended or Box(text[at + 1 : at + 1 + MAX_OPEN], command.start(), len(text), False)
        return Box(text[at + 1 : pairs[at]], command.start(), pairs[at] + 1, True)
    bare = _BARE.match(text, at)
    return None if bare is None else Box(bare[0], command.start(), bare.end(), True)


def _without_brace(text: str, command: re.Match[str], at: int) -> Box | None:
    """Return a box that something other than its brace ends; None when the text ends in it, or its content is cut."""
    found = _LOST_BRACE.match(text, at + 1)
    if found is None:
        return None
    content, _, dollar, angle = found.groups()
    before = text[text.rfind("\n", 0, command.start()) + 1 : command.start()]
    in_formula = (before.count("$") - before.count(r"\$")) % 2 == 1
    if (dollar and not in_formula) or (angle and not _LONE_NUMBER.fullmatch(content)):
        return None
    if content.count("{") != content.count("}") or content.count(r"\begin") != content.count(r"\end"):
        return None
    return Box(content, command.start(), found.end(1), True, lost_brace=True)


def unwrap(content: str) -> str:
    """Return ``content`` without boxes around the whole of it."""
    for _ in range(8):
        inner = boxes(content)
        if len(inner) != 1 or not inner[0].closed:
            return content
        if content[: inner[0].start].strip(" $\\()[]\n") or content[inner[0].end :].strip(" $\\()[].\n"):
            return content
        content = inner[0].text
    return content


def final_group(found: list[Box], text: str) -> list[Box]:
    """Return the last box together with the boxes joined to it by separators only (commas, ``and``, maths signs)."""
    group = found[-1:]
    for box in reversed(found[:-1]):
        between = text[box.end : group[0].start]
        if len(between) > 60 or _SEPARATOR.fullmatch(between) is None:
            break
        group.insert(0, box)
    return group
