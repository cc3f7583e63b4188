"""Corruptors that draw their noise: one sample and a source of random numbers in, noised rows out.

All randomness of an update lives here. Response tokens behind the counted ones (after the first EOS) are masked in
every row and never scored, so that the network sees a response of the length it was rolled out with and is not told
where it ends. Replays of recorded states are in ``dare_train.rl.replays``.

Shape suffixes: M rows, T positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.corruption import (
    Corruption,
    all_blocks_noise,
    complementary_noise,
    count_noise,
    full_noise,
    random_block_noise,
)
from dare_train.corruption.blocks import BlockGrid
from dare_train.draws import FullDraws
from dare_train.rl.algorithm import NetworkFacts
from dare_train.rl.checks import within
from dare_train.rl.noise import Noise
from dare_train.rl.samples import Sample


@dataclass(frozen=True, slots=True)
class FullMask:
    """The whole response masked, prompt tokens masked with a rate (d1, arXiv 2504.12216)."""

    prompt_rate: float = 0.15

    times = 1
    """Rows that score a counted token, where that is the same for all."""

    def __post_init__(self) -> None:
        """Refuse a rate that is no probability."""
        within("corruptor.prompt_rate", self.prompt_rate, 0.0, 1.0)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return one row; every counted token is scored in it."""
        made = full_noise(
            sample.ids_T,
            sample.prompt_T,
            sample.answer_T,
            draws,
            mask_id=facts.mask_id,
            rows=1,
            prompt_rate=self.prompt_rate,
        )
        return Noise.of(made.noisy_BT, sample.loss_T[None])


@dataclass(frozen=True, slots=True)
class Complementary:
    """Three rows: everything masked, a random part, the rest of it (Coupled-GRPO, arXiv 2506.20639)."""

    low: float = 0.2
    high: float = 0.8

    times = 2

    def __post_init__(self) -> None:
        """Refuse shares that leave one part empty for certain."""
        within("corruptor.low", self.low, 1e-3, self.high)
        within("corruptor.high", self.high, self.low, 1.0 - 1e-3)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the three rows; weights are 1, 1/s and 1/(1 - s)."""
        made = complementary_noise(
            sample.ids_T, sample.answer_T, draws, mask_id=facts.mask_id, rows=1, low=self.low, high=self.high
        )
        return _weighted(made, sample)


@dataclass(frozen=True, slots=True)
class CountMask:
    """Rows with evenly spread numbers of masks, weighted by the inverse of their share (LLaDA, BGPO)."""

    rows: int = 16
    legacy_rounding: bool = False

    def __post_init__(self) -> None:
        """Refuse an estimate from nothing."""
        within("corruptor.rows", self.rows, 1)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the rows; the sum of weighted log-probabilities of each is an unbiased bound of log p."""
        made = count_noise(
            sample.ids_T,
            sample.loss_T,
            draws,
            mask_id=facts.mask_id,
            rows=self.rows,
            legacy_rounding=self.legacy_rounding,
        )
        return _weighted(made, sample, facts.mask_id)


@dataclass(frozen=True, slots=True)
class CountAndComplement:
    """Pairs of a mask of 0..L tokens and its complement (ESPO, arXiv 2512.03759); weights (L + 1) / tokens."""

    pairs: int = 2
    legacy_rounding: bool = False

    def __post_init__(self) -> None:
        """Refuse an estimate from nothing."""
        within("corruptor.pairs", self.pairs, 1)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the rows, each mask followed by its complement; the mean of a pair is one estimate."""
        part_MT = count_noise(
            sample.ids_T,
            sample.loss_T,
            draws,
            mask_id=facts.mask_id,
            rows=self.pairs,
            from_zero=True,
            legacy_rounding=self.legacy_rounding,
        ).masked_BT
        masked_MT = torch.stack([part_MT, sample.loss_T & ~part_MT], dim=1).flatten(0, 1)
        share_M1 = masked_MT.sum(1, keepdim=True) / (sample.loss_T.sum() + 1)
        made = Corruption.of(sample.ids_T, masked_MT, share_M1.expand(masked_MT.shape), facts.mask_id)
        return _weighted(made, sample, facts.mask_id)


@dataclass(frozen=True, slots=True)
class RandomBlock:
    """Rows that noise one block, mask all later ones and some tokens before it (SPG, arXiv 2510.09541)."""

    rows: int = 2
    block_length: int = 32
    context_rate: float = 0.15

    def __post_init__(self) -> None:
        """Refuse an estimate from nothing and a rate that is no probability."""
        within("corruptor.rows", self.rows, 1)
        within("corruptor.block_length", self.block_length, 1)
        within("corruptor.context_rate", self.context_rate, 0.0, 1.0)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the rows; every masked token that counts is scored, with weight 1."""
        made = random_block_noise(
            sample.ids_T,
            sample.loss_T,
            sample.answer_T & ~sample.loss_T,
            draws,
            mask_id=facts.mask_id,
            grid=BlockGrid(self.block_length),
            rows=self.rows,
            context_rate=self.context_rate,
            drawn_blocks=-(-int(sample.answer_T.sum()) // self.block_length),
        )
        return Noise.of(made.noisy_BT, made.masked_BT & sample.loss_T)


@dataclass(frozen=True, slots=True)
class AllBlocks:
    """Rows with at least one mask in every block (EBPO, arXiv 2602.08676)."""

    rows: int = 16
    weighted: bool = True
    """Weigh a block's tokens by the inverse of its share of masks; SPG's bounds weigh by themselves."""

    def __post_init__(self) -> None:
        """Refuse an estimate from nothing."""
        within("corruptor.rows", self.rows, 1)

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the rows on the network's own grid of blocks."""
        made = all_blocks_noise(
            sample.ids_T,
            sample.loss_T,
            torch.ones_like(sample.loss_T),
            draws,
            mask_id=facts.mask_id,
            grid=BlockGrid(facts.block_length or len(sample.ids_T), "global"),
            rows=self.rows,
        )
        if self.weighted:
            return _weighted(made, sample, facts.mask_id)
        return Noise.of(_hide_rest(made.noisy_BT, sample, facts.mask_id), made.masked_BT)


def _weighted(made: Corruption, sample: Sample, mask_id: int | None = None) -> Noise:
    """Return the noise with weights 1/p; with ``mask_id``, what follows the counted tokens is masked."""
    noisy_MT = made.noisy_BT if mask_id is None else _hide_rest(made.noisy_BT, sample, mask_id)
    return Noise.of(noisy_MT, made.masked_BT & sample.loss_T, 1.0 / made.rate_BT)


def _hide_rest(noisy_MT: Tensor, sample: Sample, mask_id: int) -> Tensor:
    return noisy_MT.masked_fill(sample.answer_T & ~sample.loss_T, mask_id)
