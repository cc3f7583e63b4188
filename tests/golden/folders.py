"""Where golden files lie: the folders named by DARE_GOLDEN (several, separated by ':'), by default this one."""

from __future__ import annotations

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


def label(path: Path) -> str:
    """Return a short test id for a golden file."""
    return f"{path.parent.name}/{path.stem}"
