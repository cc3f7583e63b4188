"""Answer stability of one result: the figures that ``dare-eval stability`` kept, else what step maps alone can tell.

Reading an answer forward by forward needs the tokenizer and the scorer, which the board does not load. Without kept
figures it shows left-to-rightness and the flip rate over repeated seeds, and says what to type for the rest.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError
from dare_eval.records.intervals import Interval
from dare_eval.report.stability import Stability, stability
from dare_eval.report.stability_file import NAME, read_stability
from leaderboard.data.items import load_items

FIGURES = (
    ("last_change", "Forward at which the answer last changed", 1.0),
    ("spent_after", "Forwards spent after that", 1.0),
    ("exit_share", "Oracle early exit: share of forwards needed, %", 100.0),
    ("oracle_right", "Right at some forward, %", 100.0),
    ("lost", "Right at some forward and wrong in the end, %", 100.0),
    ("left_to_right", "Left-to-rightness (1: strictly left to right)", 1.0),
    ("flip_rate", "Answers to one question that differ in verdict, %", 100.0),
)
"""Field of ``report.stability.Stability``, its words, and the factor to the unit shown."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the page shows of one result."""

    rows: tuple[tuple[str, str, str, str], ...]
    """Figure, value, interval, n."""
    notes: tuple[str, ...]
    trouble: str | None


def measure(folder: str, stamp: str, model: str, dataset: str) -> Measured:
    """Return the stability figures of one result of the run in ``folder`` (in state ``stamp``)."""
    path = Path(folder) / NAME
    return _measure(folder, stamp, model, dataset, path.stat().st_mtime_ns if path.exists() else 0)


@functools.lru_cache(maxsize=64)
def _measure(folder: str, stamp: str, model: str, dataset: str, kept_at: int) -> Measured:
    del kept_at  # only tells versions of the kept figures apart
    loaded = load_items(folder, stamp, model, dataset)
    if loaded.trouble:
        return Measured((), (), loaded.trouble)
    found, trouble = _kept(Path(folder), model, dataset)
    if found is None:
        found = stability(model, dataset, loaded.records, None, None)
    if not found.n:
        return Measured((), (), "no item of this result has a step map")
    notes = [f"{found.n} items, from each item's {found.source}", *([trouble] if trouble else [])]
    if found.last_change is not None and found.unread:
        notes.append(f"{found.unread} items left out: reading the response again gives another answer")
    if found.last_change is None:
        notes.append("when answers last changed: not worked out yet, the command below does it")
    return Measured(figures(found), tuple(notes), None)


def _kept(folder: Path, model: str, dataset: str) -> tuple[Stability | None, str | None]:
    """Return what ``dare-eval stability`` left for this result, and what is wrong with its file."""
    try:
        kept = read_stability(folder)
    except (DareError, OSError) as error:
        return None, str(error)
    return next((one for one in kept if (one.model, one.dataset) == (model, dataset)), None), None


def figures(found: Stability) -> tuple[tuple[str, str, str, str], ...]:
    """Return the known figures as texts."""
    rows = []
    for name, words, factor in FIGURES:
        one: Interval | None = getattr(found, name)
        if one is not None:
            low, value, high = (factor * part for part in (one.low, one.value, one.high))
            rows.append((words, f"{value:.3g}", f"{low:.3g}–{high:.3g}", f"{one.n:,}"))  # noqa: RUF001
    return tuple(rows)
