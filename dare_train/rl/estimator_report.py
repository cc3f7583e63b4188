"""How good an estimate of a response's likelihood is, against the forwards it costs: bias, spread, and a choice.

Responses are sampled from the checkpoint itself. Each estimator is drawn many times per response; what it should
give is the likelihood bound of the response: exactly (all masks of a short response), or by the mean of many
stratified rows. Estimators that mean something else (one step, token-wise, left to right) show their distance to the
bound as bias. Block networks have one estimate, all blocks at once.

Shape suffixes: M rows, T positions, X scored positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dare_train.corruption import Corruption, mask_at_rates, sequence_rates
from dare_train.draws import GeneratorDraws, RowDraws, derive, seeded
from dare_train.rl.corruptors import AllBlocks, Complementary, CountAndComplement, CountMask, FullMask
from dare_train.rl.noise import Noise
from dare_train.rl.replays import LeftToRight
from dare_train.rl.samples import Sample, completion
from dare_train.rl.trajectory import Trajectory
from dare_train.scorer import Scorer

EXACT_UP_TO = 8
"""Tokens of a response whose bound is enumerated; one more doubles the masks."""
REFERENCE_ROWS = 256
ROWS_PER_FORWARD = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """One way to estimate, as a corruptor and the factor on its weighted sum."""

    name: str
    about: str
    make: Callable[[int], Callable[[Sample, GeneratorDraws, Any], Noise]]
    """From a number of rows to a corruptor."""
    factor: Callable[[int], float]
    rows: Callable[[Sequence[int]], list[int]] = list
    """Numbers of rows that make sense, out of those asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What one estimator at one number of rows was found to be, per response."""

    estimator: str
    rows: int
    bias: float
    """Mean difference to the bound, in nats."""
    bias_error: float
    """Standard error of the bias."""
    std: float
    """Root of the mean variance over repeated draws, in nats."""
    tokens: float
    """Mean response tokens."""


def bernoulli(rows: int) -> Callable[[Sample, GeneratorDraws, Any], Noise]:
    """Return the corruptor of independent rates, each token masked by itself (F-bernoulli), weights 1/t."""

    def corrupt(sample: Sample, draws: GeneratorDraws, facts: Any) -> Noise:
        ids_MT = sample.ids_T.expand(rows, -1)
        own = RowDraws([draws.randint(0, 2**31) for _ in range(rows)])
        rate_MT = sequence_rates(ids_MT, own, low=1e-3, high=1.0)
        maskable_MT = sample.loss_T.expand(rows, -1)
        made: Corruption = mask_at_rates(
            ids_MT, maskable_MT, rate_MT, own.rand(*ids_MT.shape), mask_id=facts.mask_id, tail_id=None
        )
        return Noise.of(made.noisy_BT, made.masked_BT, 1.0 / made.rate_BT)

    return corrupt


def _even(rows: Sequence[int]) -> list[int]:
    return [count for count in rows if count % 2 == 0]


MASKED = (
    Estimator(
        name="elbo",
        about="independent rates, weight 1/t",
        make=bernoulli,
        factor=lambda rows: 1 / rows,
    ),
    Estimator(
        name="elbo_count",
        about="stratified numbers of masks, weight L/k (VRPO, BGPO)",
        make=lambda rows: CountMask(rows=rows),
        factor=lambda rows: 1 / rows,
    ),
    Estimator(
        name="coupled_elbo",
        about="a mask and its complement (ESPO)",
        make=lambda rows: CountAndComplement(pairs=rows // 2),
        factor=lambda rows: 1 / rows,
        rows=_even,
    ),
    Estimator(
        name="coupled_token",
        about="whole mask and two halves, token-wise (Coupled-GRPO)",
        make=lambda rows: Complementary(),
        factor=lambda rows: 0.5,
        rows=lambda rows: [3],
    ),
    Estimator(
        name="one_step",
        about="whole response masked (d1)",
        make=lambda rows: FullMask(prompt_rate=0.0),
        factor=lambda rows: 1.0,
        rows=lambda rows: [1],
    ),
    Estimator(
        name="left_to_right",
        about="chain rule, one row per token (JustGRPO)",
        make=lambda rows: LeftToRight(),
        factor=lambda rows: 1.0,
        rows=lambda rows: [0],
    ),
)
BLOCK = (
    Estimator(
        name="block_elbo",
        about="every block masked in part, all in one forward (EBPO)",
        make=lambda rows: AllBlocks(rows=rows),
        factor=lambda rows: 1 / rows,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A network and the responses that are estimated."""

    network: Any
    scorer: Scorer
    trajectories: Sequence[Trajectory]
    seed: int = 0

    @property
    def facts(self) -> Any:
        """What corruptors have to know of the network."""
        return self.network.config

    def samples(self) -> list[Sample]:
        """Return the responses up to their first EOS; those without a token are left out."""
        found = [completion(trajectory, 1.0, "to_first_eos", self.facts) for trajectory in self.trajectories]
        return [sample for sample in found if bool(sample.loss_T.any())]

    def measure(self, rows: Sequence[int], repeats: int) -> list[Quality]:
        """Return the quality of every estimator at every number of rows that makes sense."""
        samples = self.samples()
        references = [self.reference(sample, number) for number, sample in enumerate(samples)]
        tokens = sum(float(sample.loss_T.sum()) for sample in samples) / len(samples)
        found = []
        for estimator in BLOCK if self.facts.block_length else MASKED:
            for count in estimator.rows(rows):
                values = [self._draw(estimator, count, sample, n, repeats) for n, sample in enumerate(samples)]
                found.append(_quality(estimator, count, values, references, tokens))
        return found

    def reference(self, sample: Sample, number: int) -> float:
        """Return the bound of a response: enumerated where it is short, else the mean of many rows."""
        length = int(sample.loss_T.sum())
        if self.facts.block_length is None and length <= EXACT_UP_TO:
            return self._enumerated(sample, length)
        kind = AllBlocks if self.facts.block_length else CountMask
        noise = kind(rows=REFERENCE_ROWS)(sample, self._draws("reference", number, 0), self.facts)
        return float(self._values([sample], [noise])[0]) / REFERENCE_ROWS

    def _enumerated(self, sample: Sample, length: int) -> float:
        """Return ``mean over k of mean over masks of k tokens of (L / k) sum logp``."""
        places = sample.loss_T.nonzero().flatten().tolist()
        masks, weights = [], []
        for count in range(1, length + 1):
            for chosen in itertools.combinations(places, count):
                mask_T = torch.zeros_like(sample.loss_T)
                mask_T[list(chosen)] = True
                masks.append(mask_T)
                weights.append(1.0 / (length * math.comb(length, count)) * length / count)
        masked_MT = torch.stack(masks)
        made = Corruption.of(sample.ids_T, masked_MT, torch.ones(masked_MT.shape), self.facts.mask_id)
        weight_MT = torch.tensor(weights)[:, None].expand(masked_MT.shape)
        return float(self._values([sample], [Noise.of(made.noisy_BT, masked_MT, weight_MT)])[0])

    def _draw(self, estimator: Estimator, rows: int, sample: Sample, number: int, repeats: int) -> list[float]:
        corrupt = estimator.make(rows)
        noises = [corrupt(sample, self._draws(estimator.name, rows, number, n), self.facts) for n in range(repeats)]
        return [estimator.factor(rows) * value for value in self._values([sample] * repeats, noises).tolist()]

    def _draws(self, *parts: int | str) -> GeneratorDraws:
        return GeneratorDraws(seeded(derive(self.seed, "estimators", *parts)))

    @torch.no_grad()
    def _values(self, samples: Sequence[Sample], noises: Sequence[Noise]) -> Tensor:
        """Return the weighted sum of log-probabilities of each noise."""
        totals = []
        for sample, noise in zip(samples, noises, strict=True):
            total = 0.0
            for start in range(0, len(noise.states), ROWS_PER_FORWARD):
                states_MT = noise.states[start : start + ROWS_PER_FORWARD]
                inside_X = (noise.row_X >= start) & (noise.row_X < start + len(states_MT))
                chosen_MT = torch.zeros(states_MT.shape, dtype=torch.bool)
                chosen_MT[noise.row_X[inside_X] - start, noise.column_X[inside_X]] = True
                target_MT = sample.ids_T.expand(states_MT.shape)
                tensors = (states_MT, target_MT, chosen_MT, torch.ones_like(chosen_MT))
                logp_X = self.scorer(self.network, *(tensor.to(self.network.device) for tensor in tensors)).cpu()
                total += float((logp_X.double() * noise.weight_X[inside_X].double()).sum())
            totals.append(total)
        return torch.tensor(totals, dtype=torch.float64)


def _quality(
    estimator: Estimator, rows: int, values: Sequence[Sequence[float]], references: Sequence[float], tokens: float
) -> Quality:
    drawn_SR = torch.tensor(values, dtype=torch.float64)
    difference_S = drawn_SR.mean(1) - torch.tensor(references, dtype=torch.float64)
    count = len(references)
    return Quality(
        estimator=estimator.name,
        rows=rows or round(tokens),
        bias=float(difference_S.mean()),
        bias_error=float(difference_S.std() / math.sqrt(count)) if count > 1 else math.nan,
        std=float(drawn_SR.var(1).mean().sqrt()) if drawn_SR.shape[1] > 1 else 0.0,
        tokens=tokens,
    )


def choose_rows(found: Sequence[Quality], target_std: float) -> dict[str, int]:
    """Return the fewest rows of each estimator whose spread is at most ``target_std``.

    Where none of the measured ones is, the number follows from the largest, variances falling as 1/rows.
    Estimators with a fixed number of rows are left out.
    """
    chosen: dict[str, int] = {}
    for name in dict.fromkeys(quality.estimator for quality in found):
        mine = sorted((quality for quality in found if quality.estimator == name), key=lambda quality: quality.rows)
        if len(mine) < 2:
            continue
        fitting = [quality.rows for quality in mine if quality.std <= target_std]
        last = mine[-1]
        chosen[name] = fitting[0] if fitting else math.ceil(last.rows * (last.std / target_std) ** 2)
    return chosen
