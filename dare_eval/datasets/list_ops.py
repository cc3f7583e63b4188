"""List operations as an OpenCompass data set: what parallel decoding breaks (after ParallelBench, arXiv 2510.04767).

dict(type=ListOpsDataset, abbr="list-ops", split="test", size=400, style="plain", lengths=[4, 6], ...)

Lists are drawn with a seed; none of the test split occurs in the training split. ``operations`` picks some of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from datasets import Dataset
from opencompass.datasets.base import BaseDataset

from dare_eval.datasets.planning_files import style_of
from dare_eval.puzzles.list_ops import LENGTHS, OPERATIONS, generate
from dare_eval.puzzles.prompts import list_prompt


class ListOpsDataset(BaseDataset):
    """Columns ``id, operation, task, reference, prompt, reply_prefix``; ``prompt`` follows the style."""

    identity: ClassVar[tuple[str, ...]] = ("task",)
    """The column that says which item this is, whatever the prompt."""

    @staticmethod
    def load(
        split: str = "test",
        size: int = 400,
        seed: int = 0,
        operations: Sequence[str] = OPERATIONS,
        lengths: Sequence[int] = LENGTHS,
        style: str = "plain",
    ) -> Dataset:
        """Return the items, the operations in turn; raises ``UsageError`` for unknown operations and lengths."""
        fewest, most = lengths
        made = generate(split, size, seed=seed, operations=operations, lengths=(fewest, most))
        asked = style_of(style)
        rows = []
        for number, task in enumerate(made):
            prompt, text = list_prompt(task, asked), json.dumps(task.to_dict())
            row = {"id": f"list-ops-{split}-{seed}-{number:04d}", "operation": task.operation, "task": text}
            rows.append({**row, "reference": text, "prompt": prompt.text, "reply_prefix": prompt.prefix})
        return Dataset.from_list(rows)
