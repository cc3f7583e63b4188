"""The store as short lines for people: one per checkpoint, one per run, each with its scores and what is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dare_eval.records.run_rows import UNREADABLE
from dare_eval.records.store import Store
from dare_eval.records.tables import Result

_BAD_LINE = re.compile(r"line \d+: ")  # as records.run_rows labels it


def run_lines(store: Store) -> list[dict[str, Any]]:
    """Return one line per run (newest state of its folder), oldest first."""
    results: dict[int, list[Result]] = {}
    for result in store.results():
        results.setdefault(result.evaluation_id, []).append(result)
    evaluations = store.evaluations()
    ids = Counter(evaluation.run_id for evaluation in evaluations)
    lines = []
    for evaluation in evaluations:
        labels = [*evaluation.labels, *damage(results.get(evaluation.id, []))]
        if ids[evaluation.run_id] > 1:
            labels.append(f"{ids[evaluation.run_id]} folders share this id")
        if not Path(evaluation.folder).exists():
            labels.append("folder is gone")
        lines.append(
            {
                "run": evaluation.run_id,
                "status": evaluation.status,
                "origin": evaluation.origin,
                "started": evaluation.started,
                "results": [score_line(result) for result in results.get(evaluation.id, [])],
                "notes": labels,
                "folder": evaluation.folder,
            }
        )
    return lines


def checkpoint_lines(store: Store) -> list[dict[str, Any]]:
    """Return one line per checkpoint with the results of its weights, oldest first."""
    results: dict[str | None, list[Result]] = {}
    for result in store.results():
        results.setdefault(result.weight_hash, []).append(result)
    return [
        {
            "checkpoint": checkpoint.name,
            "algorithm": checkpoint.algorithm,
            "parent": checkpoint.parent,
            "weights": checkpoint.weight_hash[:12],
            "spent": budget_line(checkpoint.manifest),
            "results": [score_line(result) for result in results.get(checkpoint.weight_hash, [])],
            "notes": checkpoint.labels,
            "folder": checkpoint.folder,
        }
        for checkpoint in store.checkpoints()
    ]


def damage(results: Iterable[Result]) -> list[str]:
    """Return what could not be read of a run: its report, and per data set the first bad record line and how many."""
    notes: dict[str, None] = {}
    for result in results:
        if result.model == UNREADABLE:
            notes |= dict.fromkeys(result.labels)
        lines = [label for label in result.labels if _BAD_LINE.match(label)]
        if lines:
            notes[f"{result.model} {result.dataset}: {len(lines)} record lines not read; {lines[0]}"] = None
    return list(notes)


def budget_line(manifest: Mapping[str, Any] | None) -> list[str]:
    """Return what training spent, entry by entry; what was not measured is left out, and nothing measured says so."""
    spent = (manifest or {}).get("budget") or {}
    lines = [f"{name} {value:,.6g}" for name, value in spent.items() if isinstance(value, int | float)]
    return lines or ["not recorded"]


def score_line(result: Result) -> str:
    """Return a score with everything it may not be shown without: interval, n, NFE and tokens/s."""
    if result.value is None:
        return f"{result.model} {result.dataset} {result.metric}: no score (n = {result.n})"
    half = "" if result.low is None else f" [{result.low:.2f}, {result.high:.2f}]"
    cost = "".join(f", {name} {value:.4g}" for name, value in (("NFE", result.nfe), ("tok/s", result.tps)) if value)
    return f"{result.model} {result.dataset} {result.metric}: {result.value:.2f}{half} (n={result.n}{cost})"
