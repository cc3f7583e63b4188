"""Where golden files lie: the folders named by DARE_GOLDEN (several, separated by ':'), by default this one.

What a file is follows from its content, not from its name or folder, so a file dropped in anywhere finds its test.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent


def golden_folders() -> list[Path]:
    """Return the folders to search; a named folder that does not exist is an error, not an empty run."""
    named = [Path(part) for part in os.environ.get("DARE_GOLDEN", "").split(":") if part]
    for folder in named:
        if not folder.is_dir():
            raise FileNotFoundError(f"DARE_GOLDEN names {folder}, which is no folder")
    return named or [HERE]


def golden_files(pattern: str) -> list[Path]:
    """Return every file below the golden folders whose name matches ``pattern``."""
    return sorted(path for folder in golden_folders() for path in folder.rglob(pattern))


def golden_json(kind: str) -> list[Path]:
    """Return the files whose content is ``kind``: sampling, likelihood, metrics or algorithms."""
    return [path for path in golden_files("*.json") if kind_of(path) == kind]


@functools.cache
def kind_of(path: Path) -> str:
    """Return which test a JSON file belongs to; what is like no other goes to the algorithms, which refuse it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, list):
        return "likelihood"
    if {"architectures", "model_type"} & set(content) or path.name.endswith(".index.json"):
        return "model"
    cases = content.get("cases") or []
    if "inputs" in content or not isinstance(cases, list):
        return "algorithms"
    if any("sampler" in case for case in cases) or path.name.endswith("_sampling.json"):
        return "sampling"
    return "metrics" if any("points" in case for case in cases) else "algorithms"


def only_in_the_project() -> bool:
    """Whether the project's own golden files are run: they must be there, folders named elsewhere may hold one kind."""
    return not os.environ.get("DARE_GOLDEN")


def label(path: Path) -> str:
    """Return a short test id for a golden file."""
    return f"{path.parent.name}/{path.stem}"
