"""Which tokens of a continuation each noisy copy masks, and with what weight its log-probabilities count.

An estimator is nothing but such a plan: loglik = mean over batches of sum over copies s and masked tokens j of
weight[s, j] * log p(token j | copy s).

* counts (LLaDA, arXiv 2502.09992, Eq. 6): x of n tokens masked, x spread evenly over the strata, weight n / x.
* bernoulli (Dream): each token masked with probability p, p spread evenly over the strata, weight 1 / p.
* blocks (BD3-LM, arXiv 2503.09573): counts inside each block, earlier blocks clean.
* pseudo: each token masked alone. ar: token i given the earlier ones, the rest masked.

Draws belong to (batch, position), not to a length, so that the options of one item share their random numbers.

Legend: S copies, Q batches of strata, n tokens.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.decoding.likelihood.options import LikelihoodOptions
from dare_eval.decoding.rows import generator_of

BERNOULLI_LEAST = 1e-3
"""Smallest masking probability of Dream's estimator."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Masks and weights of all copies of one continuation."""

    mask_Sn: Tensor
    weight_Sn: Tensor
    batches: int
    """Independent batches Q; copies are ordered batch by batch."""
    exact: bool = False
    """Nothing is random: every draw gives the same sum."""


def make_plan(estimator: str, block_n: Tensor, options: LikelihoodOptions, group: str) -> Plan:
    """Return the plan for a continuation whose tokens lie in the blocks ``block_n`` (all 0 outside block families)."""
    count = len(block_n)
    if estimator == "pseudo":
        mask_Sn = _offsets(block_n)[None] == torch.arange(_longest(block_n))[:, None]
        return Plan(mask_Sn, mask_Sn.double(), 1, exact=True)
    if estimator == "ar":
        return _left_to_right(block_n)
    strata = options.resolved_strata(estimator)
    draws = _Draws(options.mc_num // strata, strata, options.seed, group)
    if estimator == "bernoulli":
        return _bernoulli(draws, count)
    return _counts(draws, block_n, options.rounding)


class _Draws:
    """Uniform numbers of one item, shared by its options."""

    def __init__(self, batches: int, strata: int, seed: int, group: str) -> None:
        self.batches, self.strata = batches, strata
        self._levels = generator_of(f"{seed}|{group}|levels")
        self._positions = generator_of(f"{seed}|{group}|positions")

    def levels(self) -> Tensor:
        """Return one draw per batch, [Q]."""
        return torch.rand(self.batches, generator=self._levels, dtype=torch.float64)

    def spread(self) -> Tensor:
        """Return noise levels in [0, 1) spread evenly over the strata of each batch, [S]."""
        offset_b = torch.arange(self.strata, dtype=torch.float64) / self.strata
        return ((self.levels()[:, None] + offset_b) % 1.0).flatten()

    def positions(self, count: int) -> Tensor:
        """Return one draw per copy and position, [S, n]; a position's draws do not depend on the length."""
        copies = self.batches * self.strata
        return torch.stack(
            [torch.rand(copies, generator=self._positions, dtype=torch.float64) for _ in range(count)], 1
        )


def _counts(draws: _Draws, block_n: Tensor, rounding: str) -> Plan:
    key_Sn = draws.positions(len(block_n))
    mask_Sn = torch.zeros(key_Sn.shape, dtype=torch.bool)
    weight_Sn = torch.zeros_like(key_Sn)
    for block in sorted(set(block_n.tolist())):
        inside_n = block_n == block
        total = int(inside_n.sum())
        masks_S = _legacy_masks(draws, total) if rounding == "legacy" else (draws.spread() * total).floor() + 1
        rank_Sm = key_Sn[:, inside_n].argsort(-1).argsort(-1)
        mask_Sn[:, inside_n] = rank_Sm < masks_S[:, None]
        weight_Sn[:, inside_n] = (total / masks_S / draws.strata)[:, None].expand_as(rank_Sm)
    # A single token is masked in every copy.
    return Plan(mask_Sn, weight_Sn, draws.batches, exact=_longest(block_n) == 1)


def _legacy_masks(draws: _Draws, total: int) -> Tensor:
    """Return LLaDA's counts: k uniform, then k .. k + (b-1) n / b in b rounded steps, wrapped into 1 .. n."""
    first_Q1 = (draws.levels() * total).floor()[:, None] + 1
    steps_b = torch.arange(draws.strata, dtype=torch.float64) * total / draws.strata
    return ((torch.round(first_Q1 + steps_b) - 1) % total + 1).flatten()


def _bernoulli(draws: _Draws, count: int) -> Plan:
    level_S1 = (1 - BERNOULLI_LEAST) * draws.spread()[:, None] + BERNOULLI_LEAST
    mask_Sn = draws.positions(count) < level_S1
    return Plan(mask_Sn, (1 / level_S1 / draws.strata).expand(-1, count), draws.batches)


def _left_to_right(block_n: Tensor) -> Plan:
    """Return copies that reveal one more token of every block each; only the first hidden token counts."""
    offset_n, copy_S1 = _offsets(block_n), torch.arange(_longest(block_n))[:, None]
    return Plan(offset_n >= copy_S1, (offset_n == copy_S1).double(), 1, exact=True)


def _offsets(block_n: Tensor) -> Tensor:
    """Return each token's index among the continuation's tokens of its block."""
    return torch.cat([torch.arange(size) for size in _sizes(block_n)])


def _longest(block_n: Tensor) -> int:
    return max(_sizes(block_n))


def _sizes(block_n: Tensor) -> list[int]:
    """Return the number of tokens in each block, in order."""
    return [len(list(run)) for _, run in itertools.groupby(block_n.tolist())]
