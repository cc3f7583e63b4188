"""A benchmark: an OpenCompass data set named by dotted path in a config; nothing is registered."""

from __future__ import annotations

from datasets import Dataset
from opencompass.datasets.base import BaseDataset


class ParityDataset(BaseDataset):
    """The numbers 0 .. size-1 with the question whether each is even or odd."""

    @staticmethod
    def load(size: int = 10) -> Dataset:
        """Return ``size`` rows."""
        rows = [{"id": f"parity-{n}", "question": f"Is {n} even or odd?", "number": n} for n in range(size)]
        return Dataset.from_list(rows)
