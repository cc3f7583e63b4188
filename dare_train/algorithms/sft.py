"""Supervised fine-tuning: masked diffusion and block diffusion, told apart by the objective's block length.

Noise and denominator are made for the whole share of a step before it is split into micro-batches; each row draws
its noise from its own stream. Formula and normalisers: ``dare_train.objectives``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dare_train.algorithms.common import slices
from dare_train.config import ObjectiveSettings
from dare_train.corruption import Corruption, block_rates, mask_at_rates, scheduled, sequence_rates
from dare_train.data.batches import Batch, collate
from dare_train.data.render import Example
from dare_train.data.supply import Supply
from dare_train.draws import RowDraws, derive
from dare_train.engine.world import World
from dare_train.estimators import row_sums
from dare_train.objectives import denominator, token_weights, weighted_nll
from dare_train.scorer import Scorer

HELDOUT_SAMPLES = 4
"""Noised copies of each held-out row; always the same ones, so that two evaluations differ by the weights only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SftPlan:
    """Everything that decides the batches and the loss, besides the rows."""

    objective: ObjectiveSettings
    """Resolved: no value is None except ``block_length`` and ``cart_p``."""
    seed: int
    batch_size: int
    micro_batch_size: int
    mask_id: int
    pad_id: int
    eos_id: int
    scorer: Scorer
    eos_padding: str = "none"
    max_length: int = 0
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class SftPart:
    """One micro-batch: noised rows, their weights and the denominator of the global batch."""

    ids_BT: Tensor
    noisy_BT: Tensor
    masked_BT: Tensor
    valid_BT: Tensor
    weight_BT: Tensor
    denominator: float

    def dump(self) -> dict[str, Any]:
        """Return the tensors for a failure report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Sft:
    """Hands out noised batches and adds the gradient of the weighted negative log-likelihood."""

    def __init__(self, supply: Supply[Example], plan: SftPlan, world: World, heldout: Sequence[Example] = ()) -> None:
        self.supply, self.heldout, self.plan, self.world = supply, heldout, plan, world

    def begin(self, network: Any, build: Callable[[], Any]) -> None:
        """Need nothing of the network as it is before training."""

    def work(self, step: int) -> list[SftPart]:
        """Return this process's micro-batches of optimizer step ``step``."""
        batch = self.batch(step)
        noised = self.corrupt(batch, "noise")
        objective = self.plan.objective
        weight_BT = token_weights(
            noised,
            batch.maskable_BT,
            weight=str(objective.weight),
            normaliser=str(objective.normaliser),
            cart_p=objective.cart_p or 0.3,
            context_BT=batch.valid_BT,
            schedule=str(objective.schedule),
        )
        local = denominator(noised.masked_BT, batch.maskable_BT, str(objective.normaliser))
        whole = self.world.sums({"denominator": float(local)})["denominator"]
        return [
            SftPart(
                ids_BT=batch.ids_BT[rows].to(self.plan.device),
                noisy_BT=noised.noisy_BT[rows].to(self.plan.device),
                masked_BT=noised.masked_BT[rows].to(self.plan.device),
                valid_BT=batch.valid_BT[rows].to(self.plan.device),
                weight_BT=weight_BT[rows].to(self.plan.device),
                denominator=whole,
            )
            for rows in slices(len(batch.keys), self.plan.micro_batch_size)
        ]

    def batch(self, step: int) -> Batch:
        """Return this process's rows of the global batch of ``step``, padded alike in all processes."""
        plan = self.plan
        first = step * plan.batch_size
        chosen = self.supply.take(first, plan.batch_size)
        longest = max(len(example.ids) for example in chosen)
        if plan.eos_padding == "max_length":
            longest = plan.max_length
        share = self.world.share(list(enumerate(chosen, start=first)))
        eos_id = None if plan.eos_padding == "none" else plan.eos_id
        rows = [example for _, example in share]
        length = None if plan.eos_padding == "none" else longest
        return collate(rows, [key for key, _ in share], pad_id=plan.pad_id, eos_id=eos_id, length=length)

    def corrupt(self, batch: Batch, purpose: str) -> Corruption:
        """Return the noised rows; the noise of a row depends on the seed, the purpose and the row's place only."""
        objective = self.plan.objective
        draws = RowDraws([derive(self.plan.seed, purpose, key) for key in batch.keys])
        low, high = float(objective.time_low or 0.0), float(objective.time_high or 1.0)
        if objective.time_per == "block":
            block = int(objective.block_length or 1)
            time_BT = block_rates(batch.ids_BT, draws, low=low, high=high, block_length=block)
        else:
            time_BT = sequence_rates(batch.ids_BT, draws, low=low, high=high)
        tail_id = self.plan.eos_id if objective.eos_as_one else None
        rate_BT = scheduled(time_BT, str(objective.schedule))
        uniform_BT = draws.rand(*batch.ids_BT.shape)
        return mask_at_rates(
            batch.ids_BT, batch.maskable_BT, rate_BT, uniform_BT, mask_id=self.plan.mask_id, tail_id=tail_id
        )

    def backward(self, network: nn.Module, part: SftPart) -> Mapping[str, float]:
        """Add the gradient of one micro-batch; returns its share of the loss and what it cost."""
        logp_X = self.plan.scorer(network, part.noisy_BT, part.ids_BT, part.masked_BT, part.valid_BT)
        loss = weighted_nll(logp_X, part.weight_BT[part.masked_BT], part.denominator)
        # Gradients are averaged over processes, the loss is a sum over them.
        torch.autograd.backward(loss * self.world.size)
        rows = float(len(part.ids_BT))
        return {
            "loss": float(loss.detach()),
            "rows": rows,
            "forwards": rows,
            "tokens": float(part.valid_BT.sum()) * (1 if self.plan.objective.block_length is None else 2),
            "masked": float(part.masked_BT.sum()),
            "nll": float(-logp_X.detach().sum()),
        }

    @torch.no_grad()
    def evaluate(self, network: Any) -> dict[str, list[float]]:
        """Return the likelihood bound of each held-out row of this process, in nats per answer token."""
        plan, found = self.plan, []
        share, own = self.world.even_share(range(len(self.heldout)))
        for rows in slices(len(share), plan.micro_batch_size):
            chosen = share[rows]
            batch = collate([self.heldout[index] for index in chosen], chosen, pad_id=plan.pad_id)
            total_B = torch.zeros(len(chosen), dtype=torch.float64)
            for sample in range(HELDOUT_SAMPLES):
                noised = self.corrupt(batch, f"heldout {sample}")
                weight_BT = token_weights(
                    noised,
                    batch.maskable_BT,
                    weight="inverse_rate",
                    normaliser="sequence",
                    schedule=str(plan.objective.schedule),
                )
                tensors = (noised.noisy_BT, batch.ids_BT, noised.masked_BT, batch.valid_BT)
                logp_X = plan.scorer(network, *(tensor.to(plan.device) for tensor in tensors)).cpu()
                total_B -= row_sums(logp_X * weight_BT[noised.masked_BT], noised.masked_BT)
            found += (total_B / HELDOUT_SAMPLES).tolist()
        return {"nll": found[:own]} if self.heldout else {}

    def describe(self) -> dict[str, Any]:
        """Return the resolved objective for the manifest."""
        return self.plan.objective.model_dump()

    def state(self) -> dict[str, Any]:
        """Return nothing: rows and noise follow from the step."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up nothing."""
