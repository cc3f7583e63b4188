"""Aggregators: the weight of each unit in the loss, and the denominators, which belong to the whole global batch.

An aggregator gives weights before division, a bucket per unit, and what this process counts in each bucket. Counts
are added up over all processes and parts before anything is divided, so that the gradient does not depend on how a
batch is split (a mean of means would).

Shape suffixes: U units, S samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_train.rl.checks import one_of
from dare_train.rl.units import Scored, Units

Counts = dict[int, float]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the policy loss and of the KL term, and the bucket whose count they are divided by."""

    policy_U: Tensor
    kl_U: Tensor
    bucket_U: Tensor


class Aggregator:
    """One bucket for everything, divided by its count."""

    __slots__ = ()

    def known(self, lengths: Sequence[float], signals: int, every_token: bool) -> Counts | None:
        """Return the counts where they follow from the samples: counted tokens of each, how many have an advantage.

        ``every_token``: units stand for each counted token exactly once. None where counts depend on the noise.
        """
        return None

    def divided(self, weights: Weights, total: Mapping[int, float]) -> tuple[Tensor, Tensor]:
        """Return policy and KL weights after division by the counts of the whole batch."""
        divisor_U = self.divisor(weights.bucket_U, total)
        return weights.policy_U / divisor_U, weights.kl_U / divisor_U

    def divisor(self, bucket_U: Tensor, total: Mapping[int, float]) -> Tensor:
        """Return what each unit is divided by, [U]."""
        return torch.tensor([max(total[int(bucket)], 1e-8) for bucket in bucket_U.tolist()])


def _one_bucket(policy_U: Tensor, kl_U: Tensor | None = None) -> Weights:
    return Weights(policy_U, policy_U if kl_U is None else kl_U, torch.zeros(len(policy_U), dtype=torch.long))


@dataclass(frozen=True, slots=True)
class TokenMean(Aggregator):
    """Mean over response tokens; a unit that stands for a response weighs as many tokens as it has."""

    def known(self, lengths: Sequence[float], signals: int, every_token: bool) -> Counts | None:
        """Return the number of counted tokens."""
        return {0: sum(lengths)} if every_token else None

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts."""
        return _one_bucket(units.mass_U), {0: float(units.mass_U.sum())}


@dataclass(frozen=True, slots=True)
class Sequences(Aggregator):
    """Mean (or sum) over the tokens of a response, then mean over responses.

    ``inside``: ``mean`` or ``sum``. ``outside``: ``mean``, or ``padded`` (divide the sum by the padded length).
    """

    inside: str = "mean"
    outside: str = "mean"

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("aggregator.inside", self.inside, ("mean", "sum"))
        one_of("aggregator.outside", self.outside, ("mean", "padded"))

    def known(self, lengths: Sequence[float], signals: int, every_token: bool) -> Counts | None:
        """Return the number of responses."""
        return {0: 1.0 if self.outside == "padded" else float(len(lengths))}

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts."""
        weight_U = units.mass_U
        if self.inside == "mean":
            total_S = torch.zeros(scored.samples).index_add(0, units.sample_U, units.mass_U)
            weight_U = units.mass_U / total_S[units.sample_U]
        if self.outside == "padded":
            return _one_bucket(weight_U / scored.answer_S[units.sample_U]), {0: 1.0}
        return _one_bucket(weight_U), {0: float(scored.samples)}


@dataclass(frozen=True, slots=True)
class StepMean(Aggregator):
    """Mean over the tokens that a denoising step fixed in the batch, then mean over steps (CJ-GRPO's own code).

    ``all_steps`` also counts steps up to the last that fixed nothing, as zeros.
    """

    all_steps: bool = False

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts: one bucket per step."""
        steps, count = torch.unique(units.step_U, return_counts=True)
        counts = dict(zip(steps.tolist(), count.double().tolist(), strict=True))
        return Weights(units.mass_U, units.mass_U, units.step_U), counts

    def divisor(self, bucket_U: Tensor, total: Mapping[int, float]) -> Tensor:
        """Return tokens of the step times number of steps, [U]."""
        steps = max(total) + 1 if self.all_steps else len(total)
        return torch.tensor([total[int(bucket)] * steps for bucket in bucket_U.tolist()])


@dataclass(frozen=True, slots=True)
class TransitionMean(Aggregator):
    """Mean over the tokens of a transition (block and step), over the transitions of a response, over responses.

    The weights of a response add up to 1 (CJ-GRPO on block-causal networks; one block on others).
    """

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts."""
        block_U = units.column_U // (scored.block_length or scored.width)
        steps = int(units.step_U.max()) + 1 if len(units) else 1
        key_U = (units.sample_U * scored.width + block_U) * steps + units.step_U
        keys, transition_U, size = torch.unique(key_U, return_inverse=True, return_counts=True)
        sample_of = keys // (scored.width * steps)
        transitions_S = torch.bincount(sample_of, minlength=scored.samples)
        weight_U = 1.0 / (size[transition_U] * transitions_S[units.sample_U])
        return _one_bucket(weight_U), {0: float(scored.samples)}


@dataclass(frozen=True, slots=True)
class MaskedMean(Aggregator):
    """Mean over masked tokens, each times its confidence; the policy term also times length over masked (MDPO)."""

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts."""
        masked_S = torch.bincount(units.sample_U, minlength=scored.samples)
        share_U = scored.answer_S[units.sample_U] / masked_S[units.sample_U]
        return _one_bucket(units.gain_U * share_U, units.gain_U), {0: float(len(units))}


@dataclass(frozen=True, slots=True)
class ActiveResponses(Aggregator):
    """Mean over the tokens of a response, then over responses with an advantage (JustGRPO)."""

    def known(self, lengths: Sequence[float], signals: int, every_token: bool) -> Counts | None:
        """Return the number of responses with an advantage."""
        return {0: float(signals)}

    def __call__(self, scored: Scored, units: Units) -> tuple[Weights, Counts]:
        """Return the weights and this process's counts: prompts without signal do not dilute."""
        return _one_bucket(units.mass_U / units.length_U), {0: float((scored.advantage_S != 0).sum())}

    def divisor(self, bucket_U: Tensor, total: Mapping[int, float]) -> Tensor:
        """Return the number of active responses plus 1e-5 (their constant), [U]."""
        return torch.full((len(bucket_U),), total.get(0, 0.0) + 1e-5)


def merged(keys: list[float], values: list[float]) -> Counts:
    """Return the counts of all processes added up."""
    total: Counts = {}
    for key, value in zip(keys, values, strict=True):
        total[int(key)] = total.get(int(key), 0.0) + value
    if not total:
        raise UsageError("an update without any completion", remedy="a larger rollout")
    return total
