"""Reading Python source that a model wrote: does it parse, what does it define, how far does it parse.

Parsing is bounded (``Reader``), since a reply may be long and every rule wants to look at it. Nothing is executed.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence

from dare_eval.scoring.code.parsing import parse

MAX_CHARS = 100_000
_BUDGET_CHARS = 4_000_000
_MAX_CUTS = 60
_CODE_LINE = re.compile(r"(?:from\s+[\w.]+\s+import\b|import\s+\w|(?:async\s+)?def\s+\w|class\s+\w|@\w)")
DEFINITIONS = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign
)  # fmt: skip
"""Statements that a module may keep without doing anything when loaded."""


class Reader:
    """Parses pieces of one reply, each once, until their total length passes a budget; then nothing parses any more."""

    def __init__(self) -> None:
        self.left = _BUDGET_CHARS
        self._seen: dict[str, ast.Module | SyntaxError] = {}

    def tree(self, text: str) -> ast.Module | None:
        """Return the syntax tree, or None when ``text`` is not Python."""
        found = self._parse(text)
        return found if isinstance(found, ast.Module) else None

    def error_line(self, text: str) -> int:
        """Return the 1-based line at which the parser gave up, 1 when it does not say."""
        found = self._parse(text)
        return max(1, found.lineno or 1) if isinstance(found, SyntaxError) else 1

    def defines(self, text: str, names: Sequence[str]) -> bool:
        """Return whether ``text`` gives one of ``names`` a body; without names, whether it defines anything."""
        tree = self.tree(text)
        found = definitions(tree) if tree is not None else {}
        return any(found.get(name) for name in names) if names else any(found.values())

    def longest_prefix(self, text: str) -> str:
        """Return the longest leading run of lines that parses; '' when there is none within the cuts allowed."""
        lines = text.split("\n")
        for _ in range(_MAX_CUTS):
            if not lines:
                break
            joined = "\n".join(lines)
            if self.tree(joined) is not None:
                return joined
            lines = lines[: min(self.error_line(joined), len(lines)) - 1]
        return ""

    def _parse(self, text: str) -> ast.Module | SyntaxError:
        if text not in self._seen:
            self.left -= len(text)
            try:
                self._seen[text] = parse(text if self.left > 0 else "(")
            except SyntaxError as error:
                self._seen[text] = error
        return self._seen[text]


def definitions(tree: ast.Module) -> dict[str, bool]:
    """Return the names bound at the top level of a module by def, class or assignment; False for a mere stub."""
    found: dict[str, bool] = {}
    for node in _top_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = not is_stub(node.body)
        elif isinstance(node, ast.Assign):
            found.update({target.id: True for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = True
    return found


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _top_level(node.body)
            yield from _top_level(getattr(node, "orelse", []))


def is_stub(body: Sequence[ast.stmt]) -> bool:
    """Return whether a body holds nothing but a docstring, ``pass`` or ``...``."""
    return all(
        isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in body
    )


def from_first_code_line(text: str) -> str:
    """Return ``text`` without what stands before its first import, def, class or decorator; '' when there is none."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _CODE_LINE.match(line):
            return "\n".join(lines[number:])
    return ""


def looks_like_code(text: str) -> bool:
    """Return whether parsable ``text`` is more than a word or a number: "42" and "Yes" are Python too."""
    return bool(re.search(r"[(=:]|\breturn\b|\bimport\b", text))


def dedent(text: str) -> str:
    """Return ``text`` without the indentation its lines share; '' when they share none."""
    moved = textwrap.dedent(text)
    return "" if moved == text else moved


def unquote(text: str) -> str:
    """Return what stands between the single quotes of few-shot MBPP prompts (``'def f(): ...'``); '' without them."""
    bare = text.strip()
    return bare[1:].removesuffix("'") if bare.startswith("'") and not bare.startswith("'''") else ""


def drop_asserts(text: str) -> str:
    """Return ``text`` without the asserts that stand alone at its top level, the rest untouched."""
    try:
        tree = parse(text)
    except SyntaxError:
        return text
    lines, shared = text.split("\n"), _shared_lines(tree)
    for node in reversed(tree.body):
        if isinstance(node, ast.Assert) and not shared & {node.lineno, node.end_lineno}:
            lines[node.lineno - 1 : node.end_lineno] = []
    return "\n".join(lines)


def _shared_lines(tree: ast.Module) -> set[int | None]:
    """Return the lines on which one top-level statement ends and the next one starts."""
    return {after.lineno for before, after in itertools.pairwise(tree.body) if before.end_lineno == after.lineno}


def future_first(head: str, text: str) -> str:
    """Return ``head`` and ``text`` as one module; ``from __future__`` imports move to the top, where they must be."""
    if not head:
        return text
    lines = text.split("\n")
    future = [line for line in lines if line.startswith("from __future__ import")]
    rest = [line for line in lines if line not in future]
    return "\n".join([*future, head, "", "", *rest])
