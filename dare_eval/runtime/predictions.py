"""Prediction files as planning and scoring need them: the entries of one file in order, and all of a data set.

Reading (also of files cut by a crash) is ``records.predictions``'s; this file adds order, completeness and parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.errors import IncompleteError
from dare_eval.records.predictions import read_predictions


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries ``"0" .. "n-1"`` of one prediction file; ``whole`` is False when the file is damaged."""

    entries: list[dict[str, Any]]
    whole: bool


def read_entries(path: Path) -> Entries:
    """Return the entries of ``path`` in order; of a damaged file those before the damage."""
    found = read_predictions(path)
    entries: list[dict[str, Any]] = []
    while "prediction" in (entry := found.items.get(str(len(entries)), {})):
        entries.append(entry)
    return Entries(entries, found.problem is None and len(entries) == len(found.items))


def part_files(target: Path) -> list[Path]:
    """Return ``<abbr>_0.json``, ``<abbr>_1.json``, ... beside ``target`` in the order of their numbers."""
    pattern = re.compile(re.escape(target.stem) + r"_(\d+)\.json")
    numbered = {path: pattern.fullmatch(path.name) for path in target.parent.glob("*.json")}
    return sorted(
        (path for path, match in numbered.items() if match), key=lambda path: int(path.stem.rpartition("_")[2])
    )


def load_all(target: Path, expected: int) -> list[dict[str, Any]]:
    """Return all ``expected`` entries of a data set, from one file or from its parts.

    Raises ``IncompleteError`` when there are fewer or more, or when a file is damaged.
    """
    files = [target] if target.exists() else part_files(target)
    read = {path.name: read_entries(path) for path in files}
    entries = [entry for found in read.values() for entry in found.entries]
    damaged = [name for name, found in read.items() if not found.whole]
    if damaged or len(entries) != expected:
        state = "damaged" if damaged else "incomplete" if files else "missing"
        raise IncompleteError(
            f"predictions are {state}",
            seen=f"{len(entries)} of {expected} items in {target.parent}"
            + (f"; {', '.join(damaged)}" if damaged else ""),
            remedy="run the same command again: only the missing items run",
        )
    return entries
