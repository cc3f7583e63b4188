"""The pieces of a reply that may be code: between marker lines, inside fences, before the first fence.

A fence is a line that starts with three or more backquotes or tildes; one with a language tag opens, one without
closes an open fence and opens otherwise. A fence inside a docstring of the code does not end it: the first closing
line that leaves a parsable piece does. Marker lines are lines that hold nothing but ``[BEGIN]`` or ``[DONE]``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dare_eval.scoring.code.source import Reader

_MAX_PIECES = 40
_MAX_CLOSERS = 6
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_TRAILING = re.compile(r"(?P<before>.*[^\s`])[ \t]*`{3,}(?P<tag>[A-Za-z0-9+]*)[ \t]*$")
_ONE_LINE = re.compile(r"```(?:python3?|py)?[ \t]*([^`\n]+?)[ \t]*```")
_TAG = re.compile(r"[A-Za-z][\w+#.-]*$")
_BEGIN, _DONE = re.compile(r"[ \t]*\[BEGIN\][ \t]*$"), re.compile(r"[ \t]*\[DONE\][ \t]*$")


class Piece(NamedTuple):
    """A piece of the reply and the rule that cut it out."""

    text: str
    rule: str


class _Line(NamedTuple):
    """A fence line: its number, its tag, and code that stands on the same line."""

    number: int
    tag: str
    code: str


def marked(text: str) -> list[Piece]:
    """Return what stands between marker lines, or before a ``[DONE]`` line whose ``[BEGIN]`` the prompt wrote."""
    pieces, start, opened = [], 0, False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _BEGIN.match(line):
            start, opened = number + 1, True
        elif _DONE.match(line):
            pieces.append(Piece("\n".join(lines[start:number]), "markers" if opened else "marker_prompt_opened"))
            start, opened = number + 1, False
    if opened:
        pieces.append(Piece("\n".join(lines[start:]), "marker_unclosed"))
    return pieces


def fenced(text: str, reader: Reader) -> list[Piece]:
    """Return the pieces inside fences, in order; the ones that a prompt-opened fence explains come first."""
    lines = _split_trailing(text).split("\n")
    fences = [found for number, line in enumerate(lines) if (found := _fence(number, line)) is not None]
    fences = fences[: 4 * _MAX_PIECES]
    pieces = [Piece(one, "fence_one_line") for one in _ONE_LINE.findall(text)[:_MAX_PIECES]]
    if fences:
        pieces += _walk(lines, fences, reader, opened_by_prompt=True)[:_MAX_PIECES]
        pieces += _walk(lines, fences, reader, opened_by_prompt=False)[:_MAX_PIECES]
    return pieces


def before_fence(text: str) -> str:
    """Return what stands before the first fence or marker line; all of ``text`` when there is none."""
    lines = _split_trailing(text).split("\n")
    for number, line in enumerate(lines):
        if _fence(number, line) is not None or _DONE.match(line) or _BEGIN.match(line):
            return "\n".join(lines[:number])
    return text


def _split_trailing(text: str) -> str:
    """Give a fence that follows text on its line a line of its own."""
    lines: list[str] = []
    for line in text.split("\n"):
        found = _TRAILING.match(line)
        lines += [found["before"], "```" + found["tag"]] if found and "```" not in found["before"] else [line]
    return "\n".join(lines)


def _fence(number: int, line: str) -> _Line | None:
    found = _FENCE.match(line)
    if found is None:
        return None
    first, _, rest = found["info"].strip().partition(" ")
    if _TAG.match(first) and not rest:
        return _Line(number, first, "")
    if first.lower() in ("python", "python3", "py"):  # an info string, or code on the line of the fence
        return _Line(number, first, rest if re.match(r"(?:def|from|import|class)\b", rest) else "")
    return _Line(number, "", found["info"].strip())


def _walk(lines: list[str], fences: list[_Line], reader: Reader, *, opened_by_prompt: bool) -> list[Piece]:
    pieces, position = [], 0
    if opened_by_prompt:
        if fences[0].tag:
            return []
        pieces.append(Piece("\n".join(lines[: fences[0].number]), "fence_prompt_opened"))
        position = 1
    while position < len(fences):
        opener = fences[position]
        piece, position = _close(lines, fences, position, reader)
        pieces.append(Piece(f"{opener.code}\n{piece.text}" if opener.code else piece.text, piece.rule))
    return pieces


def _close(lines: list[str], fences: list[_Line], opener: int, reader: Reader) -> tuple[Piece, int]:
    """Return the piece that fence ``opener`` opens and the position of the fence after its end."""
    start = fences[opener].number + 1
    following = list(enumerate(fences[opener + 1 :], opener + 1))
    closers = [(at, fence) for at, fence in following if not fence.tag][:_MAX_CLOSERS]
    for order, (at, fence) in enumerate(closers):
        text = "\n".join(lines[start : fence.number])
        if reader.tree(text) is not None:
            return Piece(text, "fence" if order == 0 and at == opener + 1 else "fence_docstring"), at + 1
    if following:
        at, fence = following[0]
        return Piece("\n".join(lines[start : fence.number]), "fence"), at if fence.tag else at + 1
    return Piece("\n".join(lines[start:]), "fence_unclosed"), len(fences)
