"""Preference optimisation on pairs of answers: DPO with likelihood bounds, and VRPO's smaller variance.

``loss = -log sigmoid(beta [(B(y_w) - B_ref(y_w)) - (B(y_l) - B_ref(y_l))])``, B the bound of ``estimators.elbo``, not
divided by the length (VRPO, arXiv 2505.19223). VRPO spends its n noised rows on n rates with one mask each and
shows policy and reference the same masks; ``dpo`` is the naive estimate it improves on. Published code divides the
bound by the padded length, which makes beta 512 times smaller: ``elbo_norm = length`` is the named variant closest
to it.

Shape suffixes: P pairs, S = 2 P answers (better and worse alternate), R = S M noised rows, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dare_train.algorithms.common import Demand, slices
from dare_train.corruption import Corruption, count_noise
from dare_train.data.batches import Batch, collate
from dare_train.data.pairs import Pair
from dare_train.data.supply import Supply
from dare_train.draws import GeneratorDraws, derive, seeded
from dare_train.engine.world import World
from dare_train.estimators import preference_losses, preference_margin, row_sums
from dare_train.reference import Reference
from dare_train.replay import replay_backward
from dare_train.scorer import Scorer

DEFAULTS = {
    "dpo": {"times": 1, "masks_per_time": 4, "shared_draws": False},
    "vrpo": {"times": 4, "masks_per_time": 1, "shared_draws": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePlan:
    """Everything that decides the batches and the loss, besides the pairs."""

    algo: str
    beta: float
    times: int
    masks_per_time: int
    shared_draws: bool
    by_length: bool
    rows_per_forward: int
    heldout_times: int
    seed: int
    batch_size: int
    micro_batch_size: int
    mask_id: int
    pad_id: int
    scorer: Scorer
    device: str = "cpu"

    @property
    def rows(self) -> int:
        """Noised rows per answer."""
        return self.times * self.masks_per_time


@dataclass(frozen=True, slots=True)
class NoisedAnswers:
    """Some answers, each noised M times; the first copies of all answers come first, then the second ones.

    So a chunk of rows holds different answers, and its size in tokens does not depend on M.
    """

    ids_RT: Tensor
    valid_RT: Tensor
    noise: Corruption
    rows: int
    length_S: Tensor

    def values(self, logp_X: Tensor, *, by_length: bool) -> Tensor:
        """Return the bound of each answer, [S]: ``estimators.elbo`` for this order of rows."""
        value_R = row_sums(logp_X / self.noise.rate_BT[self.noise.masked_BT], self.noise.masked_BT)
        value_S = value_R.view(self.rows, -1).mean(0)
        return value_S / self.length_S if by_length else value_S

    def score(self, scorer: Scorer, network: Any, rows: slice) -> Tensor:
        """Return the log-probabilities of the masked tokens of some rows, [X]."""
        noisy_RT, masked_RT = self.noise.noisy_BT[rows], self.noise.masked_BT[rows]
        return scorer(network, noisy_RT, self.ids_RT[rows], masked_RT, self.valid_RT[rows])


@dataclass(frozen=True, slots=True)
class PreferencePart:
    """One micro-batch of pairs and the number of pairs in the global batch."""

    policy: NoisedAnswers
    reference: NoisedAnswers
    whole: float

    def dump(self) -> dict[str, Any]:
        """Return the tensors for a failure report."""
        return {"ids_RT": self.policy.ids_RT, "noisy_RT": self.policy.noise.noisy_BT, "whole": self.whole}


class Preference:
    """Hands out noised pairs and adds the gradient of the pair loss, at the memory of one forward."""

    def __init__(self, supply: Supply[Pair], heldout: Sequence[Pair], plan: PreferencePlan, world: World) -> None:
        self.supply, self.heldout, self.plan, self.world = supply, heldout, plan, world
        self._reference: Reference | None = None

    def begin(self, network: Any, build: Callable[[], Any]) -> None:
        """Keep the network as it is before training as the reference."""
        self._reference = Reference(network, build)

    def work(self, step: int) -> list[PreferencePart]:
        """Return this process's micro-batches of optimizer step ``step``."""
        size = self.plan.batch_size
        share = self.world.share(list(enumerate(self.supply.take(step * size, size), start=step * size)))
        return [self._part(share[rows], float(size)) for rows in slices(len(share), self.plan.micro_batch_size)]

    def backward(self, network: nn.Module, part: PreferencePart) -> Mapping[str, float]:
        """Add the gradient of one micro-batch; returns its share of the loss and what it cost."""
        assert self._reference is not None
        plan = self.plan
        reference_S = self._reference_values(network, part.reference)
        pieces = slices(len(part.policy.ids_RT), plan.rows_per_forward)
        chunks = [partial(part.policy.score, plan.scorer, network, rows) for rows in pieces]
        margins: list[Tensor] = []

        def objective(logp_X: Tensor) -> Tensor:
            value_S = part.policy.values(logp_X, by_length=plan.by_length)
            margin_P = preference_margin(value_S[::2], value_S[1::2], reference_S[::2], reference_S[1::2])
            margins.append(margin_P.detach())
            # Gradients are averaged over processes, the loss is a sum over them.
            return self.world.size * preference_losses(margin_P, plan.beta).sum() / part.whole

        loss = replay_backward(chunks, objective, skip_idle=self.world.size == 1) / self.world.size
        margin_P, rows = margins[0], float(len(part.policy.ids_RT))
        return {
            "loss": float(loss),
            "rows": float(len(margin_P)),
            "forwards": 3 * rows,
            "tokens": 3 * float(part.policy.valid_RT.sum()),
            "margin": float(margin_P.sum()) / part.whole,
            "accuracy": float(right_share(margin_P).sum()) / part.whole,
        }

    def evaluate(self, network: Any) -> dict[str, list[float]]:
        """Return, per held-out pair of this process, the margin, and whether margin and policy prefer the better."""
        found: dict[str, list[float]] = {"margin": [], "margin_accuracy": [], "policy_accuracy": []}
        share, own = self.world.even_share(list(enumerate(self.heldout)))
        for rows in slices(len(share), self.plan.micro_batch_size):
            keyed = share[rows]
            answers = self._noised(keyed, "heldout", times=self.plan.heldout_times, masks=1)
            value_S = self._plain_values(network, answers)
            reference_S = self._reference_values(network, answers)
            margin_P = preference_margin(value_S[::2], value_S[1::2], reference_S[::2], reference_S[1::2])
            found["margin"] += margin_P.tolist()
            found["margin_accuracy"] += right_share(margin_P).tolist()
            found["policy_accuracy"] += right_share(value_S[::2] - value_S[1::2]).tolist()
        return {name: values[:own] for name, values in found.items()} if self.heldout else {}

    def describe(self) -> dict[str, Any]:
        """Return the resolved settings for the manifest."""
        names = ("algo", "beta", "times", "masks_per_time", "shared_draws", "by_length")
        return {name: getattr(self.plan, name) for name in names}

    def demand(self) -> Demand:
        """Return what a step asks for: values and reference first, then each chunk of rows again for its gradient."""
        plan = self.plan
        at_once = min(plan.rows_per_forward / 2, plan.micro_batch_size * plan.rows)
        return Demand(at_once=at_once, noised=plan.rows, parts=2, plain_passes=2, reference=True)

    def state(self) -> dict[str, Any]:
        """Return nothing: pairs and noise follow from the step."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up nothing."""

    def _part(self, keyed: Sequence[tuple[int, Pair]], whole: float) -> PreferencePart:
        policy = self._noised(keyed, "noise", times=self.plan.times, masks=self.plan.masks_per_time)
        if self.plan.shared_draws:
            return PreferencePart(policy, policy, whole)
        other = self._noised(keyed, "reference noise", times=self.plan.times, masks=self.plan.masks_per_time)
        return PreferencePart(policy, other, whole)

    def _noised(self, keyed: Sequence[tuple[int, Pair]], purpose: str, *, times: int, masks: int) -> NoisedAnswers:
        examples = [example for _, pair in keyed for example in (pair.chosen, pair.rejected)]
        batch: Batch = collate(examples, range(len(examples)), pad_id=self.plan.pad_id)
        parts = []
        for row in range(len(examples)):
            seed = derive(self.plan.seed, purpose, keyed[row // 2][0], row % 2)
            draws = GeneratorDraws(seeded(seed))
            ids_T, answer_T = batch.ids_BT[row], batch.maskable_BT[row]
            parts.append(
                count_noise(ids_T, answer_T, draws, mask_id=self.plan.mask_id, rows=times, masks_per_count=masks)
            )
        noise, rows, device = Corruption.join(parts), times * masks, self.plan.device
        order_R = torch.arange(len(noise.noisy_BT)).view(-1, rows).T.flatten()
        tensors = (noise.noisy_BT, noise.masked_BT, noise.rate_BT)
        return NoisedAnswers(
            ids_RT=batch.ids_BT.repeat(rows, 1).to(device),
            valid_RT=batch.valid_BT.repeat(rows, 1).to(device),
            noise=Corruption(*(tensor[order_R].to(device) for tensor in tensors)),
            rows=rows,
            length_S=batch.maskable_BT.sum(1).to(device),
        )

    @torch.no_grad()
    def _plain_values(self, network: Any, answers: NoisedAnswers) -> Tensor:
        pieces = slices(len(answers.ids_RT), self.plan.rows_per_forward)
        logp_X = torch.cat([answers.score(self.plan.scorer, network, rows) for rows in pieces])
        return answers.values(logp_X, by_length=self.plan.by_length)

    def _reference_values(self, network: Any, answers: NoisedAnswers) -> Tensor:
        assert self._reference is not None
        with self._reference.of(network) as reference:
            return self._plain_values(reference, answers)


def right_share(difference_P: Tensor) -> Tensor:
    """Return 1 where the better answer is ahead, 0 where it is behind, 0.5 where they are level."""
    return (difference_P > 0).float() + 0.5 * (difference_P == 0).float()
