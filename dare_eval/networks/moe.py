"""Mixture of experts: two routing rules and one way to mix.

Router scores, their normalisation and the weighted sum are computed in float32. Experts are visited one by one with
the tokens that chose them; a grouped matrix product would need the experts' weights stacked, and with it other
keys than the checkpoint's, so it is left out on purpose.

Legend: N tokens, E experts, K experts per token, G groups, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from dare_eval.networks.config import MoEConfig
from dare_eval.networks.layers import Linear, widen

Routed = tuple[Tensor, Tensor]
"""Indices [N, K] and weights [N, K] of the chosen experts."""


def softmax_routing(scores_NE: Tensor, bias_E: Tensor | None, moe: MoEConfig) -> Routed:
    """Choose by softmax probability (SDAR-MoE, LLaDA-MoE); the bias, where enabled, changes choice and weight."""
    weights_NE = scores_NE.softmax(dim=-1)
    if bias_E is not None:
        weights_NE = weights_NE + bias_E
    weights_NK, chosen_NK = weights_NE.topk(moe.top_k, dim=-1)
    if moe.renormalise:
        weights_NK = weights_NK / weights_NK.sum(dim=-1, keepdim=True)
    return chosen_NK, weights_NK


def grouped_sigmoid_routing(scores_NE: Tensor, bias_E: Tensor | None, moe: MoEConfig) -> Routed:
    """Choose inside the best groups by biased sigmoid score, weigh by the unbiased one (LLaDA2).

    A group's score is the sum of its two best experts; the weights are normalised and scaled.
    """
    weights_NE = scores_NE.sigmoid()
    choice_NE = weights_NE if bias_E is None else weights_NE + bias_E
    if moe.top_groups < moe.groups:
        choice_NGe = choice_NE.view(len(choice_NE), moe.groups, -1)
        group_NG = choice_NGe.topk(min(2, choice_NGe.shape[-1]), dim=-1).values.sum(dim=-1)
        best_Ng = group_NG.topk(moe.top_groups, dim=-1).indices
        open_NG = torch.zeros_like(group_NG, dtype=torch.bool).scatter(-1, best_Ng, True)
        choice_NE = choice_NGe.masked_fill(~open_NG[..., None], float("-inf")).flatten(-2)
    chosen_NK = choice_NE.topk(moe.top_k, dim=-1).indices
    weights_NK = weights_NE.gather(-1, chosen_NK)
    if moe.renormalise:
        weights_NK = weights_NK / (weights_NK.sum(dim=-1, keepdim=True) + 1e-20)
    return chosen_NK, weights_NK * moe.scale


ROUTINGS: dict[str, Callable[[Tensor, Tensor | None, MoEConfig], Routed]] = {
    "softmax": softmax_routing,
    "grouped_sigmoid": grouped_sigmoid_routing,
}


class Router(Linear):
    """The linear layer that scores experts."""

    def scores(self, hidden_ND: Tensor) -> Tensor:
        """Return the scores [N, E]; the product is taken in float32 whatever the network computes in."""
        with torch.autocast(hidden_ND.device.type, enabled=False):
            wide_ND = widen(hidden_ND)
            return functional.linear(wide_ND, self.weight.to(wide_ND.dtype))


def choose(scores_NE: Tensor, bias_E: Tensor | None, moe: MoEConfig) -> Routed:
    """Return the experts and weights of each token by the network's routing rule."""
    return ROUTINGS[moe.routing](scores_NE, None if bias_E is None else bias_E.to(scores_NE.dtype), moe)


def probabilities(scores_NE: Tensor, moe: MoEConfig) -> Tensor:
    """Return each token's probabilities over all experts [N, E], as balance is judged by them."""
    if moe.routing == "softmax":
        return scores_NE.softmax(dim=-1)
    weights_NE = scores_NE.sigmoid()
    return weights_NE / weights_NE.sum(dim=-1, keepdim=True)


class Watch(Protocol):
    """Sees every routing of a network; see ``dare_train.engine.balance``."""

    def __call__(self, layer: int, scores_NE: Tensor, routed: Routed) -> Routed:
        """Return ``routed``, unchanged in value."""
        ...


def mix(hidden_ND: Tensor, routed: Routed, experts: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Return the weighted sum of the chosen experts' outputs, [N, D] in the type of ``hidden_ND``.

    With gradients, experts that no token chose run on no token: their gradient is zero instead of missing, so an
    optimizer step is the same however the batch is split over micro-batches and processes.
    """
    chosen_NK, weights_NK = routed
    order_M = chosen_NK.flatten().argsort(stable=True)
    token_M = order_M // chosen_NK.shape[1]
    counts = torch.bincount(chosen_NK.flatten(), minlength=len(experts)).tolist()
    everyone = torch.is_grad_enabled()
    outputs = [
        experts[index](hidden_ND[rows])
        for index, rows in enumerate(torch.split(token_M, counts))
        if everyone or rows.numel()
    ]
    scaled_MD = torch.cat(outputs).to(weights_NK.dtype) * weights_NK.flatten()[order_M, None]
    total_ND = torch.zeros(hidden_ND.shape, dtype=weights_NK.dtype, device=hidden_ND.device)
    return total_ND.index_add(0, token_M, scaled_MD).to(hidden_ND.dtype)
