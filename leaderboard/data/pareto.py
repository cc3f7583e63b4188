"""Quality against cost: one curve per model and decoding strategy, with AUP and its bootstrap interval.

A strategy is everything of the decode spec except what trades quality for speed (steps, threshold, factor). Models
that write left to right, or of which nobody recorded how they write (remote ones), stand beside the curves as points,
or as a level where their cost was not counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.provenance import cache_dir
from dare_eval.records.vectors import Vectors, read_vectors
from dare_eval.report.aup import Setting, aup, aup_interval, points_of
from dare_eval.report.pareto import pareto
from leaderboard.data.board import DIFFUSION, Board, Cell

SPEED = ("steps", "threshold", "factor", "min_transfer")
"""Decode settings that make a strategy faster or slower."""
_SHOWN = ("block_length", "gen_length", "temperature", "cache", "cfg_scale", "eos_rule", "engine")
COSTS = {"NFE": "nfe", "tokens/s": "tps", "tokens per forward": "tpf"}
"""Name of each cost axis and the cell's field."""


@dataclass(frozen=True, slots=True)
class Area:
    """AUP of one strategy."""

    value: float
    low: float | None
    high: float | None
    kept: int
    points: int
    beyond: bool


@dataclass(frozen=True, slots=True)
class Strategy:
    """One model decoded one way, fastest setting first."""

    name: str
    model: str
    kind: str
    cells: tuple[Cell, ...]
    area: Area | None
    """None below two points, or where tokens per forward were not counted."""


def strategies(board: Board, column: tuple[str, str], models: Sequence[str] = ()) -> list[Strategy]:
    """Return the strategies of ``column`` (data set, metric), of all models or of ``models`` (see :func:`models_of`).

    Of equal settings measured several times the newest run counts. AUP weighs against the best score of the column,
    whichever models are shown.
    """
    cells = [cell for cell in board.cells if cell.column == column and cell.value is not None]
    best = max((cell.value or 0.0 for cell in cells), default=0.0)
    newest = {(_weights(cell), cell.spec_digest): cell for cell in sorted(cells, key=lambda one: (one.started, one.id))}
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in newest.values():
        if not models or _weights(cell) in models:
            grouped.setdefault((_weights(cell), _method(cell)), []).append(cell)
    names = models_of(board, column)
    found = []
    for (weights, _), members in grouped.items():
        members.sort(key=lambda cell: (cell.nfe is None, cell.nfe or 0.0, cell.id))
        others = [one for key, one in grouped.items() if key[0] == weights]
        name = names[weights] + _difference(members[0], [one[0] for one in others])
        share = members[0].measures != "credit"  # AUP is defined on shares of right answers
        area = _area(members, best) if len(members) > 1 and best > 0 and share else None
        found.append(Strategy(name, names[weights], members[0].kind, tuple(members), area))
    return sorted(found, key=lambda one: (one.kind != DIFFUSION, one.name))


def models_of(board: Board, column: tuple[str, str]) -> dict[str, str]:
    """Return the models of ``column``: key of the weights and a name for people."""
    checkpoints = {checkpoint.weight_hash: checkpoint.name for checkpoint in board.checkpoints}
    names: dict[str, list[str]] = {}
    for cell in board.cells:
        if cell.column == column and cell.value is not None:
            names.setdefault(_weights(cell), []).append(cell.model)
    found = {key: checkpoints.get(key) or stem(sorted(set(models))) for key, models in names.items()}
    twice = {name for name in found.values() if list(found.values()).count(name) > 1}
    return {key: f"{name} ({key[:6]})" if name in twice else name for key, name in found.items()}


def undominated(cells: Sequence[Cell], cost: str) -> set[int]:
    """Return the ids of the results that no other one beats in quality and cost (field ``cost``) at once."""
    known = [(cell.id, float(getattr(cell, cost)), cell.value or 0.0) for cell in cells if getattr(cell, cost)]
    sign = 1 if cost == "nfe" else -1  # speeds are better when higher
    flags = pareto([(sign * price, value) for _, price, value in known])
    return {entry[0] for entry, flag in zip(known, flags, strict=True) if flag}


def prepare_areas(board: Board) -> None:
    """Make every area of the board, so that the page finds them kept."""
    for column in {cell.column for cell in board.cells if cell.measures == "verdict"}:
        strategies(board, column)


def _weights(cell: Cell) -> str:
    return cell.weight_hash or f"run {cell.evaluation} {cell.model}"


def _method(cell: Cell) -> str:
    kept = {key: value for key, value in cell.spec.items() if key not in (*SPEED, "seed")}
    return json.dumps(kept, sort_keys=True, default=str)


def _difference(cell: Cell, others: Sequence[Cell]) -> str:
    """Return the policy, and what else tells this strategy from the others of its model."""
    if not cell.spec.get("policy"):
        return ""
    differing = [key for key in _SHOWN if len({str(other.spec.get(key)) for other in others}) > 1]
    parts = [cell.policy, *[f"{key.replace('_length', '')} {cell.spec.get(key)}" for key in differing]]
    return ", " + ", ".join(parts)


def stem(names: Sequence[str]) -> str:
    """Return what all ``names`` begin with, or the first name where that is too short to tell anything."""
    first, last = min(names), max(names)
    shared = "".join(x for x, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return shared.rstrip("-_@=,. /") if len(shared) >= 3 else first


def _area(cells: Sequence[Cell], best: float) -> Area | None:
    parts = [f"{cell.folder}|{cell.stamp}|{cell.model}|{cell.dataset}|{cell.value}|{cell.tpf}" for cell in cells]
    key = hashlib.sha256(json.dumps([best, parts]).encode()).hexdigest()
    return _kept_area(key, cells, best)


def _kept_area(key: str, cells: Sequence[Cell], best: float) -> Area | None:
    path = cache_dir() / "aup" / key[:2] / f"{key}.json"
    with contextlib.suppress(DareError, TypeError, OSError):  # absent, or of another shape: made again
        found = read_json(path, "kept area")
        return None if found is None else Area(**found)
    area = _make_area(cells, best)
    record = None if area is None else {name: getattr(area, name) for name in Area.__slots__}
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        write_json(path, record)
    return area


def _make_area(cells: Sequence[Cell], best: float) -> Area | None:
    settings = _settings(cells)
    points = points_of(settings) if settings else [(cell.tpf, cell.value) for cell in cells if cell.tpf]
    if len(points) < 2:
        return None
    area = aup([(float(rho), float(y or 0.0)) for rho, y in points], best)
    low, high = aup_interval(settings, best) if settings else (None, None)
    return Area(area.value, low, high, area.kept, len(points), area.beyond)


def _settings(cells: Sequence[Cell]) -> list[Setting] | None:
    """Return the verdicts and costs of each cell; None unless all answered the same items and counted their cost."""
    if any(cell.measures != "verdict" for cell in cells):
        return None
    try:
        tables: list[Vectors] = [read_vectors(Path(c.folder), c.stamp, c.model, c.dataset) for c in cells]
    except (DareError, OSError):  # folder gone: the stored scores still give points, without an interval
        return None
    items = [table["item"].tobytes() for table in tables]
    counted = all(table["nfe"].sum() > 0 and table["tokens"].sum() == table["tokens"].sum() for table in tables)
    if not items[0] or len(set(items)) > 1 or not counted:
        return None
    return [Setting(t["correct"].tolist(), t["tokens"].tolist(), t["nfe"].tolist()) for t in tables]
