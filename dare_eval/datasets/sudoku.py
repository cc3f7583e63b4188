"""Sudoku 4x4 as an OpenCompass data set: generated puzzles with one solution, or a published file.

In a config:

    dict(type=SudokuDataset, abbr="sudoku4", split="test", size=400, style="tiny", ...)
    dict(type=SudokuDataset, abbr="sudoku4-d1", path="$DARE_DATA/planning/sudoku_test.jsonl", source="d1", ...)
"""

from __future__ import annotations

from typing import Any, ClassVar

from datasets import Dataset
from opencompass.datasets.base import BaseDataset

from dare_eval.datasets.planning_files import read_rows, with_prompts
from dare_eval.puzzles.prompts import sudoku_prompt
from dare_eval.puzzles.sudoku import generate


class SudokuDataset(BaseDataset):
    """Columns ``id, puzzle, solution, reference, prompt, reply_prefix``; ``prompt`` follows the style."""

    identity: ClassVar[tuple[str, ...]] = ("puzzle", "solution")
    """Columns that say which item this is, whatever the prompt."""

    @staticmethod
    def load(
        split: str = "test",
        size: int = 400,
        seed: int = 0,
        split_seed: int = 0,
        style: str = "plain",
        path: str | None = None,
        source: str | None = None,
    ) -> Dataset:
        """Return the items; with ``path`` they are read (``split``, ``size`` and the seeds are then unused)."""
        if path is None:
            made = generate(split, size, seed=seed, split_seed=split_seed)
            rows = [
                {"id": f"sudoku4-{split}-{seed}-{i:04d}", **_grids(p.puzzle, p.solution)} for i, p in enumerate(made)
            ]
        else:
            read = read_rows(path, source, ("id", "puzzle", "solution"))
            rows = [{"id": row["id"], **_grids(row["puzzle"], row["solution"])} for row in read]
        return with_prompts(rows, lambda row, asked: sudoku_prompt(row["puzzle"], asked), style)


def _grids(puzzle: str, solution: str) -> dict[str, Any]:
    return {"puzzle": puzzle, "solution": solution, "reference": {"puzzle": puzzle, "solution": solution}}
