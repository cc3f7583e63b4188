"""How evenly a mixture of experts is used: counted at every step, and, when asked for, pushed towards even use.

The auxiliary loss is the Switch Transformer's (arXiv 2101.03961, eq. 4), per layer and added up over layers:
``coef * E * sum_e f_e P_e``, f_e the share of assignments that went to expert e, P_e the mean probability that tokens
give it. Here f is that of the whole batch of the step before (even before the first step), so the loss is a sum
over tokens: splitting a batch over micro-batches or processes does not change its gradient, which published trainers
with a loss per micro-batch cannot say. Its gradient is added where the routing weights pass on theirs, so no
algorithm knows of it; algorithms report their own loss without it. A token takes part in a layer when the loss depends
on what its experts say there: padding and columns that fill up a split do not.

Legend: L layers, N tokens, E experts, K experts per token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dare_eval.networks.moe import Routed, probabilities
from dare_train.engine.world import World


class RouterBalance:
    """Watches the routers of a network in training."""

    def __init__(self, network: Any, coef: float, world: World) -> None:
        self.moe, self.coef, self.world = network.config.moe, coef, world
        self.counts_LE = torch.zeros(len(network.layers), self.moe.experts, dtype=torch.float64)
        """Assignments of this process since the last ``step``."""
        self.before_LE = torch.zeros_like(self.counts_LE)
        """Assignments of the last step, over all processes."""
        for layer in network.layers:
            layer.watch = self if layer.sparse else None

    def __call__(self, layer: int, scores_NE: Tensor, routed: Routed) -> Routed:
        """Return ``routed``; in the backward pass its tokens are counted and the auxiliary gradient is added."""
        chosen_NK, weights_NK = routed
        if not torch.is_grad_enabled() or not weights_NK.requires_grad:
            return routed
        if self.counts_LE.device != weights_NK.device:
            self.counts_LE = self.counts_LE.to(weights_NK.device)
        auxiliary_N = self._auxiliary(layer, scores_NE) if self.coef else weights_NK.new_zeros(len(weights_NK))
        passing: Any = _Passing
        return chosen_NK, passing.apply(weights_NK, auxiliary_N, chosen_NK, self.counts_LE[layer])

    def _auxiliary(self, layer: int, scores_NE: Tensor) -> Tensor:
        """Return each token's part of one layer's loss [N], times the processes that gradients are averaged over."""
        experts, seen_E = self.moe.experts, self.before_LE[layer]
        total = float(seen_E.sum())
        if not total:
            return scores_NE.new_zeros(len(scores_NE))
        share_E = (seen_E / total).to(scores_NE)
        tokens = total / self.moe.top_k
        expected_N: Tensor = probabilities(scores_NE, self.moe) @ share_E
        weight = float(self.world.processes * self.coef * experts / tokens)
        return expected_N * weight

    def step(self) -> dict[str, float]:
        """End an optimizer step and return its balance.

        ``router_max_load`` is the load of the busiest expert over the mean one (1 is even), ``router_idle`` the share
        of experts that no token chose; both are means over layers.
        """
        total_LE = self.counts_LE.to("cpu", copy=True)
        if self.world.processes > 1:
            import torch.distributed as dist

            dist.all_reduce(total_LE)
        self.counts_LE.zero_()
        self.before_LE = total_LE
        used_LE = total_LE[total_LE.sum(1) > 0]
        if not len(used_LE):
            return {}
        return {
            "router_max_load": float((used_LE.amax(1) / used_LE.mean(1)).mean()),
            "router_idle": float((used_LE == 0).double().mean()),
        }

    def state(self) -> list[list[float]]:
        """Return what the next step depends on, JSON-ready."""
        return self.before_LE.tolist()

    def restore(self, state: list[list[float]]) -> None:
        """Take up the state of a checkpoint."""
        self.before_LE = torch.tensor(state, dtype=torch.float64)


def watch_routers(network: Any, coef: float, world: World) -> RouterBalance | None:
    """Return the balance of a mixture of experts, None for a dense network."""
    return None if network.config.moe is None else RouterBalance(network, coef, world)


def freeze_routers(network: Any) -> None:
    """Keep the routers of ``network`` as they are; nothing happens to a dense network."""
    for layer in network.layers:
        if layer.sparse:
            layer.at(network.config.names.router).requires_grad_(False)


class _Passing(torch.autograd.Function):
    """The routing weights as they are; backward counts assignments and gives their auxiliary loss a slope of one.

    The backward pass runs once for every token that is trained on, also when a layer is computed again for it.
    """

    @staticmethod
    def forward(ctx: Any, weights_NK: Tensor, auxiliary_N: Tensor, chosen_NK: Tensor, counts_E: Tensor) -> Tensor:
        ctx.save_for_backward(chosen_NK)
        ctx.counts_E, ctx.kind = counts_E, auxiliary_N.dtype
        return weights_NK.view_as(weights_NK)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (chosen_NK,) = ctx.saved_tensors
        trained_N = slopes[0].any(-1)
        counted_NK = trained_N[:, None].expand_as(chosen_NK).to(ctx.counts_E.dtype)
        ctx.counts_E.index_add_(0, chosen_NK.flatten(), counted_NK.flatten())
        return slopes[0], trained_N.to(ctx.kind), None, None
