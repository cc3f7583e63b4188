"""Hands rows to an algorithm by their position in the run: from memory in shuffled epochs, or from a stream.

Position p is the number of rows consumed since the start, so what a step trains on follows from the seed and the
step alone. A stream is read in its own order through a buffer that shuffles; going on after an interruption reads
up to the position again. Each process reads the whole stream and keeps its share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import torch

from dare_eval.errors import DataError
from dare_train.data.batches import RowOrder
from dare_train.draws import derive, seeded

T = TypeVar("T")
R = TypeVar("R", covariant=True)


class Supply(Protocol[R]):
    """Rows by position."""

    def take(self, start: int, count: int) -> Sequence[R]:
        """Return the rows at positions ``start`` to ``start + count - 1``."""
        ...


class Memory(Generic[T]):
    """Rows in memory; every epoch visits each once, in an order of its own."""

    def __init__(self, rows: Sequence[T], seed: int, *, shuffle: bool) -> None:
        self.rows, self.order = rows, RowOrder(len(rows), seed, shuffle=shuffle)

    def take(self, start: int, count: int) -> list[T]:
        """Return the rows at positions ``start`` to ``start + count - 1``."""
        return [self.rows[self.order[position]] for position in range(start, start + count)]


class Stream(Generic[T]):
    """Rows of an iterator that is opened anew at its end; ``buffer`` rows are held to shuffle."""

    def __init__(self, open_rows: Callable[[], Iterator[T]], seed: int, *, buffer: int) -> None:
        self._open, self._seed, self._buffer = open_rows, seed, buffer
        self._rows: Iterator[T] = iter(())
        self._next = -1

    def take(self, start: int, count: int) -> list[T]:
        """Return the rows at positions ``start`` to ``start + count - 1``; raises ``DataError`` for an empty stream."""
        if start != self._next:
            self._rows, self._next = self._endless(), 0
            while self._next < start:
                next(self._rows)
                self._next += 1
        self._next += count
        return [next(self._rows) for _ in range(count)]

    def _endless(self) -> Iterator[T]:
        epoch = 0
        while True:
            empty = True
            for row in self._shuffled(self._open(), epoch):
                empty = False
                yield row
            if empty:
                raise DataError("the training stream is empty", allowed="at least one row")
            epoch += 1

    def _shuffled(self, rows: Iterator[T], epoch: int) -> Iterator[T]:
        generator = seeded(derive(self._seed, "buffer", epoch))
        held: list[T] = []
        for row in rows:
            held.append(row)
            if len(held) > self._buffer:
                place = int(torch.randint(len(held), (), generator=generator))
                held[place], held[-1] = held[-1], held[place]
                yield held.pop()
        for place in torch.randperm(len(held), generator=generator).tolist():
            yield held[place]
