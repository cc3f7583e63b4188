r"""Sudoku 4x4: any valid completion that keeps the givens solves the puzzle.

Where the grid is read, first rule that finds something: the last closed ``<answer>`` tag; without a tag the last
``\boxed``, then the whole reply when it is nothing but a grid. A grid met somewhere in the reasoning is no answer,
unless the policy ``untagged`` says so. A grid is exactly 16 cells, drawn in any usual way; fewer or more cells are
malformed and worth 0, never padded. The preset
``d1_pad`` reproduces the published cell score instead (digits of the tag, padded with zeros or cut to 16).
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from dare_eval.errors import unknown
from dare_eval.puzzles.sudoku import CELLS, is_grid, keeps_givens
from dare_eval.scoring import boxes, text
from dare_eval.scoring.base import NO_ANSWER, Score, gold_failure
from dare_eval.scoring.policy import Policy, as_policy

PRESETS = ("default", "d1_pad")

_LABEL = re.compile(
    r"(?:\b(?:row|line|first|second|third|fourth) ?(?:row)? ?#?\d{0,1} ?[:.)]|\br\d ?[:.)]|^ ?\d ?[:.)] |^ ?[-*] )",
    re.IGNORECASE | re.MULTILINE,
)
_LATEX = re.compile(
    r"\\(?:begin|end) ?\{[a-z*]{1,20}\}(?:\{[lcr|]{1,20}\})?"
    r"|\\(?:hline|text|mathrm|left|right)(?![A-Za-z])|\\\\|\\[,;()\[\]]"
)
_RULER = re.compile(r"-{2,}|={2,}|[+┼├┤┬┴─━═╬╪]+")
_GRID = re.compile(r"[0-9_](?:[\s|,;\[\](){}&$'\"`│┃║-]*[0-9_])*")


class Found(NamedTuple):
    """A grid (16 characters, 0 for a cell left empty), or None when what stood there is none; and the rule."""

    grid: str | None
    rule: str


def score_sudoku(
    response: str,
    reference: Any,
    *,
    puzzle: str | None = None,
    preset: str = "default",
    policy: Policy | dict[str, Any] | None = None,
    **_: Any,
) -> Score:
    """Score a 4x4 Sudoku answer.

    ``reference`` is the stored solution with ``puzzle`` (0 marks an empty cell) beside it, or a mapping (or its JSON)
    with both. ``detail`` holds ``solved``, ``malformed``, ``givens_kept`` and ``empty_cells_correct`` (the share that
    agrees with the stored solution; None when malformed).
    """
    if preset not in PRESETS:
        raise unknown("sudoku preset", preset, PRESETS)
    stored = read_puzzle(reference, puzzle)
    if stored is None:
        return gold_failure(reference, "needs a 16-digit 'puzzle' and a 'solution' that completes it")
    cleaned = text.clean(response)
    if preset == "d1_pad":
        return _padded(cleaned.text, *stored)
    found = find_grid(cleaned.text, as_policy(policy))
    return _verdict(found, *stored, masks_left=cleaned.masks_left)


def read_puzzle(reference: Any, puzzle: str | None) -> tuple[str, str] | None:
    """Return (puzzle, solution) of a reference, or None when they are not a puzzle and a completion of it."""
    try:
        if isinstance(reference, str) and reference.lstrip().startswith("{"):
            reference = json.loads(reference)
        if isinstance(reference, dict):
            reference, puzzle = reference["solution"], reference["puzzle"]
    except (KeyError, ValueError):
        return None
    given, solution = (re.sub(r"\s", "", str(part)) for part in (puzzle, reference))
    fits = re.fullmatch(rf"[0-4]{{{CELLS}}}", given) and is_grid(solution) and keeps_givens(given, solution)
    return (given, solution) if fits else None


def cell_share(grid: str, puzzle: str, solution: str) -> float:
    """Return the share of the puzzle's empty cells in which ``grid`` agrees with ``solution``; 1.0 without any."""
    empty = [index for index, cell in enumerate(puzzle) if cell == "0"]
    return sum(grid[index] == solution[index] for index in empty) / len(empty) if empty else 1.0


def find_grid(cleaned: str, policy: Policy) -> Found:
    """Return the grid of a reply by the module's rules."""
    accept_open = policy.truncated == "accept"
    tag = text.answer_tag(cleaned, accept_open=accept_open)
    boxed = [box for box in boxes.boxes(tag.ended if tag else cleaned) if box.closed or accept_open]
    if tag is not None:
        return Found(read_grid(boxed[-1].text if boxed else tag.text), "answer_tag" if tag.closed else "open_tag")
    if text.has_open_tag(cleaned):
        return Found(None, "open_tag_rejected")
    if boxed:
        return Found(read_grid(boxed[-1].text), "box")
    if not re.search(r"[^\W\d_]", _undrawn(cleaned)) and (grid := read_grid(cleaned)):
        return Found(grid, "whole_text")
    grids = _runs(cleaned) if policy.untagged == "accept" else []
    return Found(grids[-1], "last_grid") if grids else Found(None, NO_ANSWER)


def read_grid(drawn: str) -> str | None:
    """Return the 16 cells of a drawing, or None when there are not exactly 16; row labels and rulers are no cells."""
    cells = re.sub(r"[^0-9_]", "", _undrawn(drawn)).replace("_", "0")
    return cells if len(cells) == CELLS else None


def _undrawn(drawn: str) -> str:
    plain = _LABEL.sub(" ", re.sub(r"[ \t]+", " ", drawn))
    return _RULER.sub(" ", _LATEX.sub(" ", plain))


def _runs(drawn: str) -> list[str]:
    runs = (re.sub(r"[^0-9_]", "", run[0]).replace("_", "0") for run in _GRID.finditer(_undrawn(drawn)))
    return [run for run in runs if len(run) == CELLS]


def _verdict(found: Found, puzzle: str, solution: str, *, masks_left: int) -> Score:
    if found.grid is None:
        missing = {"solved": False, "malformed": True, "givens_kept": None, "empty_cells_correct": None}
        return Score(False, 0.0, None, found.rule, {**missing, "masks_left": masks_left})
    kept = keeps_givens(puzzle, found.grid)
    solved = kept and is_grid(found.grid)
    share = cell_share(found.grid, puzzle, solution)
    facts: dict[str, Any] = {"solved": solved, "malformed": False, "givens_kept": kept, "empty_cells_correct": share}
    return Score(solved, 1.0 if solved else share, found.grid, found.rule, {**facts, "masks_left": masks_left})


def _padded(cleaned: str, puzzle: str, solution: str) -> Score:
    """Published reward parse: digits of the last closed tag, zeros appended or the rest cut; no tag scores 0.

    Only ``value`` is the published one; whether the puzzle is solved is judged as always.
    """
    tag = text.answer_tag(cleaned)
    digits = "" if tag is None else re.sub(r"\D", "", tag.text)
    grid = (digits + "0" * CELLS)[:CELLS]
    share = cell_share(grid, puzzle, solution) if tag is not None and "0" in puzzle else 0.0
    solved = len(digits) == CELLS and is_grid(grid) and keeps_givens(puzzle, grid)
    facts = {"solved": solved, "malformed": len(digits) != CELLS, "empty_cells_correct": share}
    return Score(solved, share, grid if tag is not None else None, "d1_pad", facts)
