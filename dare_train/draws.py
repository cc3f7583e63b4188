"""Where every random number of training comes from: a named source, never the global state.

A corruption asks its source for numbers in a fixed order. ``GeneratorDraws`` serves one stream;
``RowDraws`` serves each row from a stream of its own, so that the noise of a row depends on the seed and on the
row's place in the run, not on the batch, its padding or the number of processes. Tests serve recorded numbers.

Shape suffixes: B rows, T positions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Draws(Protocol):
    """A source of random numbers; every call advances it."""

    def rand(self, *shape: int) -> Tensor:
        """Return uniform float32 numbers in [0, 1)."""
        ...


class FullDraws(Draws, Protocol):
    """A source that also gives whole numbers, permutations and single numbers."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number in [low, high)."""
        ...

    def randint(self, low: int, high: int) -> int:
        """Return a whole number in low..high-1."""
        ...

    def randperm(self, count: int) -> Tensor:
        """Return a permutation of 0..count-1."""
        ...


class GeneratorDraws:
    """One stream for everything."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def rand(self, *shape: int) -> Tensor:
        """Return uniform float32 numbers in [0, 1)."""
        return torch.rand(shape, generator=self.generator)

    def uniform(self, low: float, high: float) -> float:
        """Return a number in [low, high)."""
        return low + (high - low) * float(torch.rand((), generator=self.generator))

    def randint(self, low: int, high: int) -> int:
        """Return a whole number in low..high-1."""
        return int(torch.randint(low, high, (), generator=self.generator))

    def randperm(self, count: int) -> Tensor:
        """Return a permutation of 0..count-1."""
        return torch.randperm(count, generator=self.generator)


class RowDraws:
    """One stream per row; shapes must start with the number of rows. Wider rows extend narrower ones."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self._rows = [seeded(seed) for seed in seeds]

    def rand(self, *shape: int) -> Tensor:
        """Return uniform float32 numbers in [0, 1), row b from the stream of row b."""
        if shape[0] != len(self._rows):
            raise ValueError(f"{shape[0]} rows asked of {len(self._rows)} streams")
        return torch.stack([torch.rand(shape[1:], generator=row) for row in self._rows])


def seeded(seed: int) -> torch.Generator:
    """Return a CPU generator of its own; the global one is left alone."""
    return torch.Generator().manual_seed(seed)


def derive(*parts: int | str) -> int:
    """Return a 63-bit seed that is a hash of ``parts``: the same on every machine, unrelated for other parts."""
    text = "/".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
