"""One update of a policy: from completions with rewards to a gradient, at the memory of a few rows.

The order is fixed: advantages, then noise, then scores (SPG's estimate depends on the sign of the advantage). A pass
over a rollout gives one batch per optimizer step; all passes are prepared, and scored by the old policy and the
reference, before the first step.

    updater = Updater(algorithm.resolve(config), config, Scorer(shift=config.shift, block_length=config.block_length))
    batches = updater.passes(trajectories, seed=0)
    batches = [updater.anchored(batch, network, reference) for batch in batches]
    for batch in batches:
        metrics = updater.backward(network, batch)
        optimizer.step()
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_train.draws import GeneratorDraws, derive, seeded
from dare_train.engine.world import World
from dare_train.replay import replay_backward
from dare_train.rl.aggregate import Counts
from dare_train.rl.algorithm import Algorithm, NetworkFacts
from dare_train.rl.batch import UpdateBatch, tabulate
from dare_train.rl.loss import Tally, active, count, distilled, known_counts, unit_losses
from dare_train.rl.noise import Noise
from dare_train.rl.samples import Sample, completion
from dare_train.rl.trajectory import Trajectory, require
from dare_train.scorer import Scorer


class Updater:
    """An algorithm bound to a network's facts, a scorer and the processes of the run."""

    def __init__(
        self,
        algorithm: Algorithm,
        facts: NetworkFacts,
        scorer: Scorer,
        *,
        world: World | None = None,
        rows_per_forward: int = 64,
        rollout_temperature: float = 1.0,
        skip_without_signal: bool = True,
        device: str = "cpu",
    ) -> None:
        """Bind a resolved algorithm (``Algorithm.resolve``).

        With ``skip_without_signal`` completions without an advantage are not scored where that changes nothing (one
        process, no KL, no distillation).
        """
        if algorithm.temperature == "rollout":
            if rollout_temperature <= 0:
                raise UsageError(
                    f"{algorithm.name} scores at the temperature of the rollout",
                    seen=f"rollout.temperature = {rollout_temperature}",
                    allowed="above 0",
                )
            scorer = replace(scorer, temperature=rollout_temperature)
        self.algorithm, self.facts, self.scorer = algorithm, facts, scorer
        self.world, self.rows_per_forward, self.device = world or World(), rows_per_forward, device
        keeps_all = algorithm.kl.active or algorithm.distil is not None or self.world.size > 1
        self.skips = skip_without_signal and not keeps_all

    @property
    def needs_old(self) -> bool:
        """Whether values of the old policy are needed: a ratio, and more than one step per rollout."""
        steps = self.algorithm.updates_per_rollout * self.algorithm.minibatches
        return bool(self.algorithm.objective.uses_ratio) and steps > 1

    def passes(self, trajectories: Sequence[Trajectory], *, seed: int, progress: float = 0.0) -> list[UpdateBatch]:
        """Return the batches of all passes over one rollout, one per optimizer step, in order."""
        samples, batches = self._samples(trajectories), []
        for number in range(self.algorithm.updates_per_rollout):
            generator = seeded(derive(seed, "pass", number))
            batches += self._noised(samples, generator=generator, progress=progress)
        return batches

    def prepare(
        self, trajectories: Sequence[Trajectory], *, generator: torch.Generator, progress: float = 0.0
    ) -> list[UpdateBatch]:
        """Return the batches of one pass, one per optimizer step; none when nothing was scored anywhere.

        All processes must bring a generator in the same state. The noise of a completion depends on it and on the
        completion's own seed, not on the batch. ``progress`` is the share of the run that is over.
        """
        return self._noised(self._samples(trajectories), generator=generator, progress=progress)

    def _noised(self, samples: Sequence[Sample], *, generator: torch.Generator, progress: float) -> list[UpdateBatch]:
        algorithm = self.algorithm
        base = int(torch.randint(2**62, (), generator=generator))
        if not any(self.world.gather({"samples": [float(len(samples))]})["samples"]):
            return []
        batches = []
        for share in shares(samples, algorithm.minibatches, self.world):
            part = [samples[number] for number in share]
            total = known_counts(algorithm, part) if self.skips else None
            if total is not None:  # then completions without signal need not even be noised
                part = [sample for sample in part if sample.advantage != 0]
            noises = [algorithm.corruptor(sample, self._draws(base, sample), self.facts) for sample in part]
            batches.append(self.assemble(part, noises, progress, total))
        return batches

    def assemble(
        self,
        samples: Sequence[Sample],
        noises: Sequence[Noise],
        progress: float = 0.0,
        total: Counts | None = None,
    ) -> UpdateBatch:
        """Return the batch of one optimizer step; its denominators count all processes, or are ``total``."""
        algorithm, blocks = self.algorithm, self.facts.block_length
        plan = count(algorithm, samples, noises, blocks, self.world.gather, total)
        scored, units = plan.scored, plan.units
        if self.skips and not all(sample.advantage for sample in samples):
            samples, noises = active(samples, noises)
            scored = tabulate(samples, noises, blocks)
            units = algorithm.reducer.units(scored)
        policy_U, kl_U = algorithm.aggregator.divided(algorithm.aggregator(scored, units)[0], plan.total)
        distil_U, constant = distilled(algorithm, samples, scored, units, plan, progress)
        rows = int(scored.rows_S.sum())
        starts = range(0, rows, self.rows_per_forward)
        chunks = tuple(slice(start, min(start + self.rows_per_forward, rows)) for start in starts)
        alone = bool(algorithm.reducer.linear) and units.in_rows(scored.row_X)
        # All processes make the same forwards, so they agree on how many and in how many passes.
        agreed = self.world.gather({"chunks": [float(len(chunks))], "alone": [float(alone)]})
        return UpdateBatch(
            samples=tuple(samples),
            noises=tuple(noises),
            scored=scored.to(self.device),
            units=units.to(self.device),
            policy_U=policy_U.to(self.device),
            kl_U=kl_U.to(self.device),
            distil_U=None if distil_U is None else distil_U.to(self.device),
            constant=constant,
            units_whole=plan.units_whole if self.world.size > 1 else float(len(units)),
            chunks=chunks,
            idle=int(max(agreed["chunks"])) - len(chunks),
            alone=all(agreed["alone"]),
            mask_id=self.facts.mask_id,
            device=self.device,
        )

    @torch.no_grad()
    def values(self, network: Any, batch: UpdateBatch) -> Tensor:
        """Return the value of each unit under ``network``, [U]."""
        logps = [self._logps(network, batch, chunk) for chunk in batch.chunks]
        for _ in range(batch.idle):
            self._logps(network, batch, batch.chunks[-1])
        logp_X = torch.cat(logps) if logps else torch.zeros(0, device=self.device)
        found: Tensor = self.algorithm.reducer.values(logp_X, batch.scored, batch.units)
        return found

    def anchored(self, batch: UpdateBatch, network: Any, reference: Any = None) -> UpdateBatch:
        """Return the batch with the values of the old policy and of the reference, where the algorithm needs them."""
        old = self.values(network, batch) if self.needs_old else None
        ref = self.values(reference, batch) if self.algorithm.kl.active else None
        return batch.with_values(old=old, ref=ref)

    def backward(self, network: Any, batch: UpdateBatch) -> dict[str, float]:
        """Add the gradient of the batch's loss; return its loss (already divided), means over units and costs.

        Where units lie inside rows each chunk of rows is trained by itself, and so it is where nothing is compared
        (one update per rollout, no KL: the derivatives do not depend on the values). Otherwise values are computed
        without a graph first and pulled with the derivatives (``dare_train.replay``). Memory is that of one chunk.
        """
        found = Tally()
        if not batch.chunks:
            return found.numbers(batch, forwards=0.0)
        if batch.alone:
            for chunk in batch.chunks:
                self._train_rows(network, batch, chunk, found)
            self._idle(network, batch)
            return found.numbers(batch, forwards=1.0)
        nothing_compared = batch.old_U is None and batch.ref_U is None and self.algorithm.objective.uses_ratio
        if self.algorithm.reducer.linear and nothing_compared:
            self._train_on_policy(network, batch, found)
            return found.numbers(batch, forwards=1.0)
        chunks = [partial(self._logps, network, batch, chunk) for chunk in batch.chunks]
        idle = [lambda: 0.0 * self._logps(network, batch, batch.chunks[-1])] * batch.idle
        scored = len(batch.scored.row_X)

        def objective(logp_X: Tensor) -> Tensor:
            value_U = self.algorithm.reducer.values(logp_X[:scored], batch.scored, batch.units)
            # Gradients are averaged over processes, the loss is a sum over them.
            return self.world.size * unit_losses(self.algorithm, batch, value_U, slice(0, len(value_U)), found)

        replay_backward([*chunks, *idle], objective, skip_idle=self.world.size == 1)
        return found.numbers(batch, forwards=2.0)

    def _train_rows(self, network: Any, batch: UpdateBatch, chunk: slice, found: Tally) -> None:
        xs, us = batch.places(chunk), batch.members(chunk)
        units = batch.units.part(xs, us)
        value_U = self.algorithm.reducer.values(self._logps(network, batch, chunk), batch.scored, units)
        torch.autograd.backward(self.world.size * unit_losses(self.algorithm, batch, value_U, us, found))

    def _train_on_policy(self, network: Any, batch: UpdateBatch, found: Tally) -> None:
        value_U = torch.zeros(len(batch.units), device=self.device, requires_grad=True)
        loss = unit_losses(self.algorithm, batch, value_U, slice(0, len(value_U)), found)
        (slope_U,) = torch.autograd.grad(self.world.size * loss, value_U)
        slope_X = slope_U[batch.units.unit_X] * batch.units.coef_X
        for chunk in batch.chunks:
            logp_X = self._logps(network, batch, chunk)
            torch.autograd.backward(logp_X, slope_X[batch.places(chunk)].to(logp_X.dtype))
        self._idle(network, batch)

    def _idle(self, network: Any, batch: UpdateBatch) -> None:
        for _ in range(batch.idle):
            torch.autograd.backward(0.0 * self._logps(network, batch, batch.chunks[-1]).sum())

    def _logps(self, network: Any, batch: UpdateBatch, chunk: slice) -> Tensor:
        return self.scorer(network, *batch.rows(chunk))

    def _draws(self, base: int, sample: Sample) -> GeneratorDraws:
        return GeneratorDraws(seeded(derive(base, sample.trajectory.seed, sample.place)))

    def _samples(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        algorithm, facts = self.algorithm, self.facts
        require(trajectories, algorithm.recorder)
        found = algorithm.advantage(trajectories, facts, algorithm.loss_region, self.world.gather)
        samples = [sample for sample in found if bool(sample.loss_T.any())]
        if not samples and self.world.size > 1 and trajectories:
            # Sharded networks work together in every forward, so this process takes part with a row without signal.
            return [completion(trajectories[0], 0.0, "all", facts)]
        return samples


def shares(samples: Sequence[Sample], parts: int, world: World) -> list[list[int]]:
    """Return the samples of each optimizer step; samples that share a parent state or a prompt stay together."""
    groups: dict[int, list[int]] = {}
    for number, sample in enumerate(samples):
        key = sample.trajectory.group if sample.siblings < 0 else sample.siblings
        groups.setdefault(key, []).append(number)
    fewest = int(min(world.gather({"groups": [float(len(groups))]})["groups"]))
    keyed = list(groups.values())
    steps = max(1, min(parts, fewest))
    edges = [len(keyed) * step // steps for step in range(steps + 1)]
    return [[n for group in keyed[a:b] for n in group] for a, b in itertools.pairwise(edges)]
