"""Noise by blocks of the answer: one block and everything after it, or some tokens of every block.

Shape suffixes: M rows, T positions, n positions of one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.corruption.record import Corruption
from dare_train.draws import FullDraws


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """Where blocks begin: counted from the first answer token, or from the first real token of the sequence."""

    length: int
    origin: str = "response"
    """``response`` or ``global``; it must be the same in rollout, corruption and attention."""

    def split(self, answer_T: Tensor, valid_T: Tensor) -> list[Tensor]:
        """Return the answer positions of each block, in order; blocks may mix with the prompt and then are short."""
        places = answer_T.nonzero().flatten()
        start = int((answer_T if self.origin == "response" else valid_T).nonzero()[0])
        number = (places - start) // self.length
        return [places[number == block] for block in sorted(set(number.tolist()))]


def random_block_noise(
    ids_T: Tensor,
    answer_T: Tensor,
    after_T: Tensor,
    draws: FullDraws,
    *,
    mask_id: int,
    grid: BlockGrid,
    rows: int,
    context_rate: float = 0.15,
    drawn_blocks: int | None = None,
) -> Corruption:
    """Return rows that each noise one block of the answer, mask all later ones and some tokens before (SPG).

    The blocks of the rows are the first of a random order of the answer's blocks; the published code orders
    ``drawn_blocks``, which counts those behind the answer, and wraps around. In the chosen block a uniform number of
    tokens is masked; before it every token, prompt included, is masked with ``context_rate``; behind the answer
    (``after_T``) everything is masked. The rate of a chosen block is its share of masks.
    """
    blocks = grid.split(answer_T, answer_T)
    order = draws.randperm(drawn_blocks or len(blocks)).tolist()
    masked_MT = torch.zeros(rows, len(ids_T), dtype=torch.bool)
    rate_MT = torch.ones(rows, len(ids_T))
    starts = []
    for row in range(rows):
        place_n = blocks[order[row % len(order)] % len(blocks)]
        count = draws.randint(1, len(place_n) + 1)
        masked_MT[row, place_n[draws.randperm(len(place_n)) < count]] = True
        rate_MT[row, place_n] = count / len(place_n)
        starts.append((int(place_n[0]), int(place_n[-1])))
    uniform_MT = draws.rand(rows, len(ids_T))
    for row, (first, last) in enumerate(starts):
        masked_MT[row, :first] = uniform_MT[row, :first] < context_rate
        rate_MT[row, :first] = context_rate
        masked_MT[row, last + 1 :] = (answer_T | after_T)[last + 1 :]
    return Corruption.of(ids_T, masked_MT, rate_MT, mask_id)


def all_blocks_noise(
    ids_T: Tensor,
    answer_T: Tensor,
    valid_T: Tensor,
    draws: FullDraws,
    *,
    mask_id: int,
    grid: BlockGrid,
    rows: int,
    levels: Sequence[float] | None = None,
) -> Corruption:
    """Return rows in which every block of the answer has at least one mask (EBPO, arXiv 2602.08676).

    Block b of row r gets a level, spread evenly over all cells from one random start, and masks
    ``floor(level n) + 1`` of its n tokens (at most n); its rate is that share. ``levels`` fixes the level of each
    block instead.
    """
    blocks = grid.split(answer_T, valid_T)
    start = draws.uniform(0.0, 1.0) if levels is None else 0.0
    masked_MT = torch.zeros(rows, len(ids_T), dtype=torch.bool)
    rate_MT = torch.ones(rows, len(ids_T))
    for row in range(rows):
        for number, place_n in enumerate(blocks):
            cell = (row * len(blocks) + number) / (len(blocks) * rows)
            level = (start + cell) % 1.0 if levels is None else levels[number]
            count = min(int(level * len(place_n)) + 1, len(place_n))
            masked_MT[row, place_n[draws.randperm(len(place_n))[:count]]] = True
            rate_MT[row, place_n] = count / len(place_n)
    return Corruption.of(ids_T, masked_MT, rate_MT, mask_id)
