"""Noise on the whole answer: all of it masked at once, or complementary halves of it.

Shape suffixes: M rows, T positions, P prompt positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dare_train.corruption.record import Corruption
from dare_train.draws import FullDraws


def full_noise(
    ids_T: Tensor, prompt_T: Tensor, answer_T: Tensor, draws: FullDraws, *, mask_id: int, rows: int, prompt_rate: float
) -> Corruption:
    """Return rows whose answer is fully masked and whose prompt tokens are masked with ``prompt_rate`` (d1).

    ``prompt_T`` marks the prompt columns that hold a token; draws are made for every column before the answer's.
    """
    width = _prompt_columns(answer_T)
    noise_MT = torch.zeros(rows, len(ids_T), dtype=torch.bool)
    noise_MT[:, :width] = draws.rand(rows, width) < prompt_rate
    masked_MT = (noise_MT & prompt_T) | answer_T
    rate_MT = torch.where(answer_T, 1.0, prompt_rate).expand(masked_MT.shape)
    return Corruption.of(ids_T, masked_MT, rate_MT, mask_id)


def complementary_noise(
    ids_T: Tensor, answer_T: Tensor, draws: FullDraws, *, mask_id: int, rows: int, low: float = 0.2, high: float = 0.8
) -> Corruption:
    """Return 3 ``rows``: the answer fully masked, a random part of it, and the rest of it (Coupled-GRPO).

    One share s, uniform in [low, high), serves all rows; the part is masked at rate s, the rest at 1 - s.
    """
    share = draws.uniform(low, high)
    uniform_MT = draws.rand(rows, len(ids_T))
    part_MT = (uniform_MT < share) & answer_T
    rest_MT = answer_T & ~part_MT
    masked_MT = torch.cat([answer_T.expand(part_MT.shape), part_MT, rest_MT])
    rate_M1 = torch.tensor([[1.0], [share], [1.0 - share]]).repeat_interleave(rows, 0)
    return Corruption.of(ids_T, masked_MT, rate_M1.expand(masked_MT.shape), mask_id)


def _prompt_columns(answer_T: Tensor) -> int:
    places = answer_T.nonzero().flatten()
    return int(places[0]) if len(places) else len(answer_T)
