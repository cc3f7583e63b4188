"""What the planning data sets share: published files, prompt styles, and the columns a prompt fills.

A published file is JSON lines with an id, the puzzle and where it comes from.

``source`` picks the items of one origin: the text before the first colon of the row's ``source`` field
(``d1``, ``SPG``, ``Dream``), case ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from dare_eval.errors import DataError, unknown
from dare_eval.puzzles.prompts import Prompt, from_file

Ask = Callable[[Mapping[str, Any], str | Prompt], Prompt]


def read_rows(path: str, source: str | None, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of ``path`` that come from ``source`` (None: all).

    Raises ``DataError`` for a missing or damaged file and ``UsageError`` for a source that no row names.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("the puzzle file cannot be read", seen=f"{path}: {error}", remedy="check the path") from error
    rows = [_row(line, path, number, needed) for number, line in enumerate(lines, start=1) if line.strip()]
    if source is None:
        return rows
    chosen = [row for row in rows if _origin(row) == source.lower()]
    if not chosen:
        raise unknown("source of puzzles", source, {_origin(row) for row in rows})
    return chosen


def style_of(style: str) -> str | Prompt:
    """Return a prompt style: its name, or the prompt in a ``.txt`` file when ``style`` is the path of one."""
    return from_file(style) if style.endswith(".txt") else style


def with_prompts(rows: list[dict[str, Any]], ask: Ask, style: str) -> Dataset:
    """Return ``rows`` as a data set with the columns ``prompt`` and ``reply_prefix``.

    ``ask`` makes the prompt of a row in a style.
    """
    chosen = style_of(style)
    prompts = [ask(row, chosen) for row in rows]
    return Dataset.from_list([
        {**row, "prompt": prompt.text, "reply_prefix": prompt.prefix} for row, prompt in zip(rows, prompts, strict=True)
    ])  # fmt: skip


def _row(line: str, path: str, number: int, needed: Sequence[str]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError("a line is not JSON", seen=f"{path}:{number}: {error}") from error
    missing = [key for key in needed if not isinstance(row, dict) or key not in row]
    if missing:
        raise DataError(
            "a puzzle lacks fields", seen=f"{path}:{number}: {', '.join(missing)}", allowed=", ".join(needed)
        )
    found: dict[str, Any] = row
    return found


def _origin(row: dict[str, Any]) -> str:
    return str(row.get("source", "")).partition(":")[0].strip().lower()
