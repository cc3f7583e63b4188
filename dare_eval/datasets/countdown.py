"""Countdown as an OpenCompass data set: all problems of three numbers, split by problem, or a published file.

In a config:

    dict(type=CountdownDataset, abbr="countdown", split="test", size=400, style="tiny", ...)
    dict(type=CountdownDataset, abbr="countdown-d1", path="$DARE_DATA/planning/countdown_test.jsonl", source="d1", ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from datasets import Dataset
from opencompass.datasets.base import BaseDataset

from dare_eval.datasets.planning_files import read_rows, with_prompts
from dare_eval.puzzles.countdown import generate
from dare_eval.puzzles.prompts import countdown_prompt


class CountdownDataset(BaseDataset):
    """Columns ``id, numbers, target, reference, prompt, reply_prefix``; ``prompt`` follows the style."""

    identity: ClassVar[tuple[str, ...]] = ("numbers", "target")
    """Columns that say which item this is, whatever the prompt."""

    @staticmethod
    def load(
        split: str = "test",
        size: int | None = 400,
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
                {"id": f"countdown-{split}-{seed}-{i:04d}", **_problem(p.numbers, p.target)} for i, p in enumerate(made)
            ]
        else:
            read = read_rows(path, source, ("id", "numbers", "target"))
            rows = [{"id": row["id"], **_problem(row["numbers"], row["target"])} for row in read]
        return with_prompts(rows, lambda row, asked: countdown_prompt(row["numbers"], row["target"], asked), style)


def _problem(numbers: Sequence[int], target: int) -> dict[str, Any]:
    listed = [int(number) for number in numbers]
    return {"numbers": listed, "target": int(target), "reference": {"numbers": listed, "target": int(target)}}
