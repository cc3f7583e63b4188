"""From a reply to a program: ordered rules, each named; the name of the one that fired is stored.

The order is written in ``docs/sandbox.md`` ("Extraction"). In short: the last piece that defines the entry point
wins, whole pieces before repaired ones, fenced and marked pieces before bare text, a body that continues the prompt
after all that. A base model's reply (``mode="completion"``) is a continuation first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dare_eval.errors import unknown
from dare_eval.scoring.code import source
from dare_eval.scoring.code.fences import Piece, before_fence, fenced, marked
from dare_eval.scoring.code.prompting import PromptCode, prompt_code
from dare_eval.scoring.code.source import Reader

MODES = ("auto", "chat", "completion")

# "<|" cannot occur in Python outside a string, so nothing but left-over special tokens is removed.
_SPECIAL = re.compile(r"<\|[A-Za-z0-9_]{1,40}\|>|</s>")
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Extracted:
    """The program of a reply."""

    code: str | None
    """What is run, the prompt's imports and helpers included; None when the reply holds nothing like code."""
    rule: str
    preamble: str
    """The prompt's part of ``code``; the tests may rely on it."""


class _Draft(NamedTuple):
    code: str
    rule: str


def extract(response: str, prompt: str, entry_points: Sequence[str], *, mode: str = "auto") -> Extracted:
    """Return the program of ``response``; never raises on what a model wrote.

    ``entry_points`` are the names of which the program must define one, none for a script. Raises ``UsageError`` for
    an unknown ``mode``.
    """
    if mode not in MODES:
        raise unknown("extraction mode", mode, MODES)
    text = _SPECIAL.sub("", response.replace("\r\n", "\n").replace("\r", "\n"))[: source.MAX_CHARS]
    reader = Reader()
    given = prompt_code(prompt, entry_points, reader)
    draft = _choose(text, given, entry_points, mode, reader)
    if draft is None:
        return Extracted(None, "no_answer", given.preamble)
    return Extracted(source.future_first(given.preamble, draft.code), draft.rule, given.preamble)


def _choose(text: str, given: PromptCode, names: Sequence[str], mode: str, reader: Reader) -> _Draft | None:
    pieces = [*fenced(text, reader), *marked(text)]
    bare = Piece(before_fence(text), "bare_text")
    trials: list[tuple[list[Piece], _Trial]] = [
        (pieces, _whole),
        (pieces, _repaired),
        ([bare], _whole),
        ([bare], _repaired),
        ([*pieces, bare], _continued(given)),
    ]
    if mode == "completion":
        trials.insert(0, ([bare], _continued(given)))
    elif mode == "auto" and text.lstrip("\n")[:1] in (" ", "\t"):
        trials.insert(1, ([bare], _continued(given)))
    for candidates, trial in trials:
        for piece in reversed(candidates):
            draft = trial(piece, names, reader)
            if draft is not None:
                return draft
    return _anything([bare, *pieces], reader)


_Trial = Callable[[Piece, Sequence[str], Reader], _Draft | None]


def _whole(piece: Piece, names: Sequence[str], reader: Reader) -> _Draft | None:
    return _Draft(piece.text, piece.rule) if _serves(piece.text, names, reader) else None


def _repaired(piece: Piece, names: Sequence[str], reader: Reader) -> _Draft | None:
    for text, repair in _repairs(piece.text, reader):
        if text and _serves(text, names, reader):
            return _Draft(text, f"{piece.rule}+{repair}")
    return None


def _repairs(text: str, reader: Reader) -> Iterator[tuple[str, str]]:
    shapes = {"as_is": text, "dedent": source.dedent(text), "unquote": source.unquote(text)}
    shapes["from_code"] = source.from_first_code_line(shapes["unquote"] or text)
    for name, shape in shapes.items():
        yield shape, name
    for name, shape in shapes.items():
        yield reader.longest_prefix(shape), "prefix" if name == "as_is" else f"{name}+prefix"


def _serves(text: str, names: Sequence[str], reader: Reader) -> bool:
    """Return whether ``text`` is a program for the tests: defines a name they call, or does something at all."""
    if names:
        return reader.defines(text, names)
    tree = reader.tree(text)
    return tree is not None and not source.is_stub(tree.body) and source.looks_like_code(text)


def _continued(given: PromptCode) -> _Trial:
    return lambda piece, names, reader: _continuation(piece, given, names, reader)


def _continuation(piece: Piece, given: PromptCode, names: Sequence[str], reader: Reader) -> _Draft | None:
    """Return the prompt's function with ``piece`` as its body, whatever became of the indentation."""
    if not given.signature or not piece.text.strip():
        return None
    bodies = _bodies(piece.text)
    for shape in (str, reader.longest_prefix):
        for body, repair in bodies:
            text = shape(f"{given.signature.rstrip()}\n{body}")
            if reader.defines(text, names):
                cut = _definitions_only(text, reader)
                repairs = repair if shape is str else f"{repair}+prefix"
                return _Draft(cut, f"{piece.rule}+continues_prompt{repairs}")
    return None


def _bodies(text: str) -> list[tuple[str, str]]:
    lines = text.strip("\n").split("\n")
    first_only = "\n".join([_INDENT + lines[0].lstrip(), *lines[1:]])
    every = "\n".join(_INDENT + line if line.strip() else line for line in lines)
    return [("\n".join(lines), ""), (first_only, "+indent_first"), (every, "+indent")]


def _definitions_only(text: str, reader: Reader) -> str:
    """Return ``text`` up to its first top-level statement that is no definition: what a base model runs on with."""
    tree = reader.tree(text)
    for node in tree.body if tree is not None else []:
        if not isinstance(node, source.DEFINITIONS):
            return "\n".join(text.split("\n")[: node.lineno - 1])
    return text


def _anything(pieces: Sequence[Piece], reader: Reader) -> _Draft | None:
    """Return the last piece that is Python though it lacks the entry point, else the last that tried to be."""
    for piece in reversed(pieces):
        tree = reader.tree(piece.text)
        if tree is not None and not source.is_stub(tree.body) and source.looks_like_code(piece.text):
            return _Draft(piece.text, f"{piece.rule}+no_entry_point")
    for piece in reversed(pieces):
        if source.from_first_code_line(piece.text):
            return _Draft(piece.text, f"{piece.rule}+not_python")
    return None
