"""Reads the commands and paths that the documentation shows; used by test_docs.py.

A ```bash fence holds commands that run offline on a fresh clone; each is executed. A ```console fence holds commands
that need weights, a GPU or a server; their paths and option names are checked instead.
"""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PATHLIKE = re.compile(r"^(?:dare_eval|dare_train|leaderboard|configs|tests|benchmarks|docs|scripts)/[\w./-]+$")


def documents(root: Path) -> list[Path]:
    return [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").glob("*.md"))]


def commands(path: Path, kind: str) -> list[str]:
    """Return the commands of all fences of ``kind``, continuation lines joined, comments dropped."""
    found = []
    for language, body in FENCE.findall(path.read_text()):
        if language == kind:
            lines = body.replace("\\\n", " ").splitlines()
            found += [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return found


def paths(path: Path) -> list[str]:
    """Return the project paths that the text names in backquotes or links."""
    text = path.read_text()
    named = [piece.rstrip("/") for piece in INLINE.findall(text)]
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith(("http", "#"))]
    here = [piece for piece in named if PATHLIKE.match(piece)]
    return here + [str(link) for link in links if link]
