"""The loss of an update as a function of unit values, and the counts that divide it.

``loss = sum_u policy_u objective(value_u, old_u, A_u) + coef kl_u KL(value_u, ref_u) - distil_u value_u``, where the
weights hold the denominators of the whole global batch already.

Shape suffix: U units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dare_train.estimators import kl_estimate
from dare_train.rl.aggregate import Counts, merged
from dare_train.rl.algorithm import Algorithm
from dare_train.rl.batch import UpdateBatch, tabulate
from dare_train.rl.credit import Gather
from dare_train.rl.noise import Noise
from dare_train.rl.samples import Sample
from dare_train.rl.units import Scored, Units


@dataclass(frozen=True, slots=True)
class Counted:
    """What the losses of a global batch are divided by, and the tables of this process that were counted."""

    total: Counts
    units_whole: float
    pairs: float
    scored: Scored
    units: Units


@dataclass(slots=True)
class Tally:
    """Sums over the units of a batch while its loss is computed."""

    sums: dict[str, float] = field(default_factory=dict)

    def add(self, **values: Tensor) -> None:
        """Add numbers."""
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())

    def numbers(self, batch: UpdateBatch, *, forwards: float) -> dict[str, float]:
        """Return the sums as shares of the global batch, and what they cost (``forwards`` passes over all rows)."""
        names = ("loss", "policy_loss", "kl_loss", "distil_loss", "ratio", "clipped", "old_gap")
        found = {name: self.sums.get(name, 0.0) for name in names}
        for name in ("ratio", "clipped", "old_gap"):
            found[name] /= max(batch.units_whole, 1.0)
        rows = float(sum(len(noise.states) for noise in batch.noises))
        copies = 1.0 if batch.scored.block_length is None else 2.0
        return {**found, "rows": rows, "forwards": forwards * rows, "tokens": forwards * copies * batch.tokens}


def unit_losses(algorithm: Algorithm, batch: UpdateBatch, value_U: Tensor, part: slice, tally: Tally) -> Tensor:
    """Return the summed loss of some consecutive units; ``tally`` receives what is worth watching."""
    units = batch.units
    old_U = None if batch.old_U is None else batch.old_U[part]
    found = algorithm.objective(value_U, old_U, units.advantage_U[part], units.length_U[part])
    policy = (batch.policy_U[part] * found.loss_U).sum()
    kl, distil = torch.zeros_like(policy), torch.zeros_like(policy)
    if algorithm.kl.active and batch.ref_U is not None:
        gap_U = kl_estimate(value_U, batch.ref_U[part], algorithm.kl.kind)
        if algorithm.kl.per_length:
            gap_U = gap_U / units.length_U[part]
        kl = algorithm.kl.coef * (batch.kl_U[part] * gap_U).sum()
    if batch.distil_U is not None:
        # The constant belongs to the batch, not to its units: the part that holds the first unit adds it.
        distil = (batch.constant if part.start == 0 else 0.0) - (batch.distil_U[part] * value_U).sum()
    loss: Tensor = policy + kl + distil
    gap = torch.zeros(()) if old_U is None else (value_U.detach() - old_U).abs().sum()
    tally.add(loss=loss, policy_loss=policy, kl_loss=kl, distil_loss=distil, old_gap=gap)
    tally.add(ratio=found.ratio_U.sum(), clipped=found.clipped_U.float().sum())
    return loss


def count(
    algorithm: Algorithm,
    samples: Sequence[Sample],
    noises: Sequence[Noise],
    block_length: int | None,
    gather: Gather,
    total: Counts | None = None,
) -> Counted:
    """Return the denominators of the global batch, of which this process brings some samples (or ``total``)."""
    scored = tabulate(samples, noises, block_length)
    units = algorithm.reducer.units(scored)
    if total is not None:
        return Counted(total, float(len(units)), 0.0, scored, units)
    counts: Counts = algorithm.aggregator(scored, units)[1]
    pairs = 0.0
    if algorithm.distil is not None:
        pairs = algorithm.distil(scored, units, tokens_of(samples, units), 0.0).pairs
    joined = gather({"bucket": [float(key) for key in counts], "count": list(counts.values())})
    others = gather({"units": [float(len(units))], "pairs": [pairs]})
    whole = merged(joined["bucket"], joined["count"])
    return Counted(whole, sum(others["units"]), sum(others["pairs"]), scored, units)


def known_counts(algorithm: Algorithm, samples: Sequence[Sample]) -> Counts | None:
    """Return the counts of these samples where no noise can change them, else None."""
    whole = bool(algorithm.reducer.whole)
    times = getattr(algorithm.corruptor, "times", 0)
    every_token = whole or times == 1 or (times > 1 and bool(algorithm.reducer.joins))
    lengths = [float(sample.loss_T.sum()) for sample in samples]
    signals = sum(sample.advantage != 0 for sample in samples)
    found: Counts | None = algorithm.aggregator.known(lengths, signals, every_token)
    return found


def active(samples: Sequence[Sample], noises: Sequence[Noise]) -> tuple[list[Sample], list[Noise]]:
    """Return the samples with an advantage; the others add nothing to a loss without KL."""
    kept = [number for number, sample in enumerate(samples) if sample.advantage != 0]
    return [samples[number] for number in kept], [noises[number] for number in kept]


def distilled(
    algorithm: Algorithm, samples: Sequence[Sample], scored: Scored, units: Units, plan: Counted, progress: float
) -> tuple[Tensor | None, float]:
    """Return weights and constant of the self-distillation term; nothing where there is none."""
    if algorithm.distil is None or not plan.pairs:
        return None, 0.0
    strength = algorithm.distil.strength(progress) / plan.pairs
    term = algorithm.distil(scored, units, tokens_of(samples, units), progress)
    return strength * term.weight_U, strength * term.constant


def tokens_of(samples: Sequence[Sample], units: Units) -> Tensor:
    """Return the token of each token unit, [U]."""
    columns = zip(units.sample_U.tolist(), units.column_U.tolist(), strict=True)
    return torch.tensor([int(samples[sample].ids_T[column]) for sample, column in columns], dtype=torch.long)
