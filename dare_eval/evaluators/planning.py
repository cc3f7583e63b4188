"""What the planning benchmarks report beside exact match: graded scores, malformed answers, trivial baselines.

Sudoku: ``cell`` is 1 for a solved puzzle, else the share of empty cells that agree with the stored solution, 0 for
a malformed grid; ``cell_d1_pad`` is the published cell score (padded, pooled by puzzle). Countdown: ``valid`` is the
share of answers that are an expression over exactly the given numbers, whatever its value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dare_eval.puzzles.countdown import FORMAT_REWARD
from dare_eval.puzzles.sudoku import baselines
from dare_eval.records.items import ItemRecord
from dare_eval.scoring import Score, score
from dare_eval.scoring.list_ops import read_task

GRADED = {"sudoku": "cell"}
"""Name of the mean graded credit by kind."""
VALID_REASON = "value is "
"""How the Countdown scorer says that only the value is wrong."""


def extra_scores(kind: str, one: Score, response: str, reference: Any, presets: Sequence[str]) -> Score:
    """Return ``one`` with the value under each preset in ``detail["presets"]``."""
    if not presets:
        return one
    values = {name: score(kind, response, reference, preset=name).value for name in presets}
    return dataclasses.replace(one, detail={**one.detail, "presets": values})


def planning_values(kind: str, scored: Sequence[Score | ItemRecord]) -> dict[str, list[float]]:
    """Return the graded metrics of ``kind`` as shares per item, by name; empty for other kinds or no items."""
    if not scored or kind not in ("sudoku", "countdown"):
        return {}
    if kind == "countdown":
        return {"valid": [float(_is_valid(one)) for one in scored]}
    values = {"cell": [float(one.value or 0.0) for one in scored]}
    for name in scored[0].detail.get("presets", {}):
        values[f"cell_{name}"] = [float(one.detail["presets"][name]) for one in scored]
    return values


def planning_notes(kind: str, records: Sequence[ItemRecord]) -> list[str]:
    """Return the lines that must stand beside a planning score: malformed answers and what trivial answers score."""
    scored = [record for record in records if record.correct is not None and not record.unrecorded]
    if kind == "countdown":
        return [
            f"an always well-formatted wrong answer scores {100 * FORMAT_REWARD:.1f} under the published reward, 0 here"
        ]
    if kind == "list_ops" and scored:
        return [_by_operation(scored)]
    if kind != "sudoku" or not scored:
        return []
    found = baselines(_puzzles(scored))
    listed = ", ".join(f"{one.name} {100 * one.exact:.1f} / {100 * one.cell:.1f}" for one in found)
    return [f"trivial answers (exact / cell): {listed}"]


def _by_operation(scored: Sequence[ItemRecord]) -> str:
    """Return the share of right answers per list operation: parallel decoding breaks some and leaves others alone."""
    verdicts: dict[str, list[bool]] = {}
    for record in scored:
        task = read_task(record.reference)
        if task is not None:
            verdicts.setdefault(task.operation, []).append(bool(record.correct))
    shares = (f"{name} {100 * sum(found) / len(found):.1f}" for name, found in verdicts.items())
    return f"by operation: {', '.join(shares)}"


def malformed(records: Iterable[ItemRecord]) -> int | None:
    """Return the number of answers that were no grid; None where the scorer does not say."""
    flags = [record.detail["malformed"] for record in records if "malformed" in record.detail]
    return sum(map(bool, flags)) if flags else None


def _puzzles(records: Iterable[ItemRecord]) -> list[tuple[str, str]]:
    references: Iterable[Mapping[str, str]] = (record.reference for record in records)
    return [(reference["puzzle"], reference["solution"]) for reference in references]


def _is_valid(one: Score | ItemRecord) -> bool:
    return bool(one.correct) or str(one.detail.get("reason", "")).startswith(VALID_REASON)
