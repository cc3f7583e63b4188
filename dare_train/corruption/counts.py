"""Noise with a drawn number of masks, stratified over the Monte-Carlo rows of one sequence.

The numbers of row j are spread evenly over all possible ones from one random start, so n rows cover them better
than n independent draws (VRPO, arXiv 2505.19223; BGPO, arXiv 2510.11683; ESPO, arXiv 2512.03759). Published code
rounds half to even, which makes a row visit only half of the numbers when the step is a half-integer and biases the
estimate; ours floors, ``legacy_rounding`` restores theirs.

Shape suffixes: M Monte-Carlo rows, T positions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dare_train.corruption.record import Corruption
from dare_train.draws import FullDraws


def spread_counts(
    start: int, rows: int, top: int, *, from_zero: bool = False, legacy_rounding: bool = False
) -> list[int]:
    """Return the number of masks of each row: 1..top, or 0..top with ``from_zero``, from ``start`` in even steps."""
    turn = round if legacy_rounding else math.floor
    if from_zero:
        return [turn(start + row * (top + 1) / rows) % (top + 1) for row in range(rows)]
    return [(turn(start + row * top / rows) - 1) % top + 1 for row in range(rows)]


def count_noise(
    ids_T: Tensor,
    answer_T: Tensor,
    draws: FullDraws,
    *,
    mask_id: int,
    rows: int,
    masks_per_count: int = 1,
    from_zero: bool = False,
    legacy_rounding: bool = False,
) -> Corruption:
    """Return ``rows`` times ``masks_per_count`` noised copies of one sequence.

    Each of ``rows`` numbers gets ``masks_per_count`` permutations of its own. A row's rate is its number of masks
    over the answer length L, or over L + 1 with ``from_zero`` (which may leave a row without masks).
    """
    place_L = answer_T.nonzero().flatten()
    length = len(place_L)
    start = draws.randint(0 if from_zero else 1, length + 1)
    counts = spread_counts(start, rows, length, from_zero=from_zero, legacy_rounding=legacy_rounding)
    masked_MT = torch.zeros(rows * masks_per_count, len(ids_T), dtype=torch.bool)
    for row in range(len(masked_MT)):
        count = counts[row // masks_per_count]
        order_L = draws.randperm(length)
        # With zero allowed the permutation gives each position its rank, as the published code has it.
        chosen = place_L[order_L < count] if from_zero else place_L[order_L[:count]]
        masked_MT[row, chosen] = True
    whole = length + 1 if from_zero else length
    rate_M1 = torch.tensor([[count / whole] for count in counts]).repeat_interleave(masks_per_count, 0)
    return Corruption.of(ids_T, masked_MT, rate_M1.expand(masked_MT.shape), mask_id)
