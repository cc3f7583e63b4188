"""The code a prompt brings: imports and helpers before the function to write, and its signature.

HumanEval's prompts are code, chat prompts wrap the same code in words or a fence; both are read alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from dare_eval.scoring.code.source import DEFINITIONS, Reader

_MAX_STARTS = 40


class PromptCode(NamedTuple):
    """What of a prompt is code; both parts are '' for a prompt in words only."""

    preamble: str
    """Imports, helpers and constants before the function to write."""
    signature: str
    """The unfinished function, from its ``def`` to the end of the prompt."""


def prompt_code(prompt: str, entry_points: Sequence[str], reader: Reader) -> PromptCode:
    """Return the code of ``prompt`` around the last definition of one of ``entry_points``."""
    lines = prompt.replace("\r\n", "\n").split("\n")
    names = "|".join(re.escape(name) for name in entry_points)
    opener = re.compile(rf"(?:async\s+def|def|class)\s+(?:{names})\b")
    starts = [number for number, line in enumerate(lines) if names and opener.match(line)]
    if not starts:
        return PromptCode("", "")
    while starts[-1] > 0 and lines[starts[-1] - 1].startswith("@"):
        starts[-1] -= 1
    return PromptCode(_preamble(lines[: starts[-1]], reader), _signature(lines[starts[-1] :], reader))


def _signature(lines: list[str], reader: Reader) -> str:
    for number, line in enumerate(lines):
        if line.lstrip().startswith("```") and reader.tree("\n".join([*lines[:number], "    pass"])) is not None:
            return "\n".join(lines[:number]) + "\n"
    return "\n".join(lines)


def _preamble(lines: list[str], reader: Reader) -> str:
    """Return the definitions among the longest run of ``lines``, up to their end, that parses."""
    starts = [n for n, line in enumerate(lines) if line and not line[0].isspace() and not line.startswith("```")]
    for start in [*starts[:_MAX_STARTS], *starts[_MAX_STARTS:][-_MAX_STARTS:]]:
        tree = reader.tree("\n".join(lines[start:]))
        if tree is not None:
            return "\n\n".join(_source(lines[start:], node) for node in tree.body if isinstance(node, DEFINITIONS))
    return ""


def _source(lines: list[str], node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *[decorator.lineno for decorator in decorators]])
    return "\n".join(lines[first - 1 : node.end_lineno])
