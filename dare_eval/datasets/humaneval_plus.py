"""HumanEval+ as an OpenCompass data set: HumanEval's prompts with the extended tests of EvalPlus, from a file.

JSON lines (``.gz`` allowed) with ``task_id, prompt, entry_point, test``, a file of EvalPlus' format. Upstream's own
config scores with the evalplus package, which downloads its tests; here the tests are data like any other.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset
from opencompass.datasets.base import BaseDataset

from dare_eval.errors import DataError

COLUMNS = ("task_id", "prompt", "entry_point", "test")


class HumanEvalPlusDataset(BaseDataset):
    """Columns ``task_id, prompt, entry_point, test``."""

    identity: ClassVar[tuple[str, ...]] = ("task_id", "prompt")
    """Columns that say which item this is, whatever the version of the tests."""

    @staticmethod
    def load(path: str) -> Dataset:
        """Return the items; raises ``DataError`` naming the file when it cannot be read."""
        place = Path(path)
        try:
            raw = gzip.decompress(place.read_bytes()) if place.suffix == ".gz" else place.read_bytes()
            rows: list[dict[str, Any]] = [json.loads(line) for line in raw.decode("utf-8").splitlines() if line.strip()]
            return Dataset.from_list([{name: row[name] for name in COLUMNS} for row in rows])
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise DataError(
                "the HumanEval+ file cannot be read",
                seen=f"{path}: {type(error).__name__}: {error}",
                allowed="JSON lines with " + ", ".join(COLUMNS),
                remedy="write EvalPlus' problems to that file, or set path in the data set config",
            ) from error
