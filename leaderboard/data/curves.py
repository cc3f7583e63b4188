"""Training curves out of ``metrics.jsonl``, for algorithms side by side; lines that are no record are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.records.atomic import parse_json
from dare_eval.records.shapes import is_number

METRICS = "metrics.jsonl"
X_AXES = ("step", "wall_s", "tokens", "rows", "rollouts", "rollout_nfe")
MAX_POINTS = 400


@dataclass(frozen=True, slots=True)
class Run:
    """The numbers one training run logged."""

    name: str
    rows: tuple[dict[str, float], ...]
    damaged: int
    """Lines that could not be read."""


def read_curve(name: str, checkpoint: Path | None) -> Run | None:
    """Return what the training run of ``checkpoint`` logged; None where there is no log."""
    for place in (checkpoint, checkpoint.parent) if checkpoint is not None else ():
        path = place / METRICS
        if path.is_file():
            rows, damaged = _rows(path)
            return Run(name, tuple(rows), damaged)
    return None


def names(runs: Sequence[Run]) -> list[str]:
    """Return the numbers that can be drawn, those that more runs logged first."""
    count: dict[str, int] = {}
    for run in runs:
        for name in {key for row in run.rows for key in row} - set(X_AXES):
            count[name] = count.get(name, 0) + 1
    first = ("reward", "loss")
    return sorted(count, key=lambda name: (name not in first, -count[name], name))


def points(run: Run, x: str, y: str) -> list[tuple[float, float]]:
    """Return at most :data:`MAX_POINTS` evenly chosen points of ``run``, the last one among them."""
    found = [(row[x], row[y]) for row in run.rows if x in row and y in row]
    every = max(1, -(-len(found) // MAX_POINTS))
    return found[::-1][::every][::-1]


def _rows(path: Path) -> tuple[list[dict[str, float]], int]:
    rows, damaged = [], 0
    for line in path.read_bytes().splitlines():
        try:
            found: Any = parse_json(line)
        except (ValueError, RecursionError):
            damaged += bool(line.strip())
            continue
        if not isinstance(found, dict):
            damaged += 1
            continue
        rows.append({key: float(value) for key, value in found.items() if is_number(value)})
    return rows, damaged
