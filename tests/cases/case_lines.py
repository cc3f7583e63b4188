"""The case lines: every ``*.jsonl`` in the folders of ``DARE_CASES`` (separated by ``:``; default this folder)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def folders() -> list[Path]:
    named = [Path(part) for part in os.environ.get("DARE_CASES", "").split(":") if part]
    return named or [HERE]


def lines(*prefixes: str) -> list[dict[str, Any]]:
    """Return the lines whose category starts with one of ``prefixes`` (all without any)."""
    paths = [path for folder in folders() for path in sorted(folder.glob("*.jsonl"))]
    cases = [json.loads(line) for path in paths for line in path.read_text().splitlines() if line.strip()]
    return [case for case in cases if not prefixes or case["category"].startswith(prefixes)]


def ids(cases: list[dict[str, Any]]) -> list[str]:
    return [str(case["id"]) for case in cases]
