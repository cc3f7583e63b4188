"""The rows of a batch that take part in a pass, and their private sources of randomness.

A row draws from two generators of its own, one for values and one for positions, seeded from its seed alone: the
numbers do not depend on the batch, on the device (they are drawn on the CPU) or on whether the other kind is used.

Legend: R participating rows, K columns of a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Row numbers of the batch, on the host and as an index tensor."""

    ids: tuple[int, ...]
    index_R: Tensor

    @classmethod
    def of(cls, ids: Sequence[int], device: torch.device) -> Rows:
        """Return the rows ``ids``."""
        return cls(tuple(ids), torch.tensor(list(ids), dtype=torch.long, device=device))

    @property
    def column_R1(self) -> Tensor:
        """Index tensor that broadcasts against columns."""
        return self.index_R[:, None]

    def within(self, larger: Rows) -> Tensor:
        """Return where these rows stand among ``larger``, [R]."""
        place = {row: number for number, row in enumerate(larger.ids)}
        return torch.tensor([place[row] for row in self.ids], dtype=torch.long, device=self.index_R.device)

    def keep(self, wanted: Sequence[bool]) -> Rows:
        """Return the rows that ``wanted`` marks; itself when it marks all."""
        if all(wanted):
            return self
        chosen = [row for row, flag in zip(self.ids, wanted, strict=True) if flag]
        return Rows.of(chosen, self.index_R.device)

    def __len__(self) -> int:
        return len(self.ids)


class Noise:
    """Per-row generators."""

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self.device = device
        self._values = [generator_of(f"{seed}|value") for seed in seeds]
        self._positions = [generator_of(f"{seed}|position") for seed in seeds]

    def values(self, rows: Rows, count: int) -> Tensor:
        """Return U(0, 1) draws for the values of ``count`` columns, [R, K] in float64."""
        return self._draw(self._values, rows, count)

    def positions(self, rows: Rows, count: int) -> Tensor:
        """Return U(0, 1) draws for the choice of positions, [R, K] in float64."""
        return self._draw(self._positions, rows, count)

    def _draw(self, generators: list[torch.Generator], rows: Rows, count: int) -> Tensor:
        draws = [torch.rand(count, generator=generators[row], dtype=torch.float64) for row in rows.ids]
        return torch.stack(draws).to(self.device)


def row_seed(base: int, prompt: Sequence[int]) -> int:
    """Return the seed of a row from the spec's seed and the row's prompt; equal prompts get equal seeds."""
    return _hash(f"{base}|{','.join(map(str, prompt))}")


def generator_of(key: str) -> torch.Generator:
    """Return a CPU generator whose numbers follow from ``key`` alone."""
    generator = torch.Generator()
    generator.manual_seed(_hash(key))
    return generator


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
