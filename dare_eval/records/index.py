"""Rebuilds the store from folders: every evaluation run and every checkpoint below a root.

``dare-eval index runs/`` runs it. Folders that did not change since they were registered are not read again. A
folder that cannot be read is a named problem; the others are still indexed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError, DataError
from dare_eval.records.listing import damage
from dare_eval.records.runs import is_run, load_run
from dare_eval.records.store import Store, folder_stamp
from dare_eval.records.tables import Result


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one pass over the folders found."""

    evaluations: int
    """Runs in the folders."""
    read: int
    """Runs that were new or changed."""
    checkpoints: int
    notes: list[str]
    """What is not known about folders that were indexed."""
    problems: list[str]
    """Folders that could not be indexed at all."""


def index_folders(store: Store, root: Path) -> IndexReport:
    """Register every run and checkpoint at or below ``root``; raises ``DataError`` when there is no such folder."""
    if not root.is_dir():
        raise DataError("no such folder", seen=root, allowed="a folder that holds runs")
    evaluations = read = checkpoints = 0
    notes: list[str] = []
    problems: list[str] = []
    places: dict[str, Path] = {}
    for folder, kind in find_folders(root):
        try:
            if kind == "checkpoint":
                store.register_checkpoint(folder)
                checkpoints += 1
                continue
            evaluations += 1
            if not store.has_stamp(folder, folder_stamp(folder)):
                store.register_evaluation(folder)
                read += 1
            notes += [f"{folder}: {problem}" for problem in load_run(folder).problems]
            places[str(folder.resolve())] = folder
        except (DareError, OSError) as error:
            problems.append(f"{folder}: {error}")
    notes += _damage(store, places)
    return IndexReport(evaluations, read, checkpoints, notes, problems)


def _damage(store: Store, places: Mapping[str, Path]) -> list[str]:
    """Return what could not be read inside the runs of ``places``, folders that were not read again included."""
    results: dict[int, list[Result]] = {}
    for result in store.results():
        results.setdefault(result.evaluation_id, []).append(result)
    found = [(places[one.folder], one.id) for one in store.evaluations() if one.folder in places]
    return [f"{folder}: {note}" for folder, number in found for note in damage(results.get(number, []))]


def find_folders(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield ``(folder, "run" | "checkpoint")`` at or below ``root`` in sorted order; runs are not searched inside.

    A checkpoint is a folder with ``config.json`` and safetensors files. Hidden folders and links are left out.
    """
    for place, children, files in os.walk(root):
        folder = Path(place)
        if is_run(folder):
            children.clear()
            yield folder, "run"
            continue
        if "config.json" in files and any(name.endswith(".safetensors") for name in files):
            yield folder, "checkpoint"
        children[:] = sorted(name for name in children if not name.startswith("."))
