"""Likelihood estimates from the log-probabilities of one corruption's masked tokens: pure reductions.

A sequence is noised M times; its rows are consecutive. Each function takes the flat log-probabilities of the masked
positions, in row order, and gives one value per sequence, unnormalised (a sum over tokens). With an exactly
conditional model the expectation of ``elbo`` and of ``coupled_elbo`` is the log-likelihood.

Shape suffixes: S sequences, M Monte-Carlo rows of a sequence, R = S M rows, T positions, X masked positions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def row_sums(values_X: Tensor, masked_RT: Tensor) -> Tensor:
    """Return the sum of each row's values, [R]."""
    row_X = masked_RT.nonzero(as_tuple=True)[0]
    return torch.zeros(len(masked_RT), dtype=values_X.dtype, device=values_X.device).index_add(0, row_X, values_X)


def elbo(logp_X: Tensor, masked_RT: Tensor, rate_RT: Tensor, rows: int) -> Tensor:
    """Return ``mean_m sum_i logp_i / p_m``, [S] (LLaDA, VRPO; ``count_noise`` or Bernoulli noise)."""
    return row_sums(logp_X / rate_RT[masked_RT], masked_RT).view(-1, rows).mean(1)


def coupled_elbo(logp_X: Tensor, masked_RT: Tensor, answer_RT: Tensor, rows: int) -> Tensor:
    """Return ESPO's coupled estimate, [S]; a sequence's rows alternate between a mask and its complement.

    A mask of k of L tokens weighs ``(L + 1) / k`` (0 for an empty one), and each pair is averaged, as are the pairs.
    """
    count_R, length_R = masked_RT.sum(1), answer_RT.sum(1)
    weight_R = (length_R + 1) / count_R.clamp_min(1)
    return (row_sums(logp_X, masked_RT) * weight_R).view(-1, rows).mean(1)


def preference_margin(chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor) -> Tensor:
    """Return how much more the policy prefers the chosen answer than the reference does, [P]."""
    return (chosen_P - ref_chosen_P) - (rejected_P - ref_rejected_P)


def preference_losses(margin_P: Tensor, beta: float) -> Tensor:
    """Return ``-log sigmoid(beta margin)`` of each pair (DPO with likelihood bounds; VRPO, arXiv 2505.19223)."""
    return -torch.nn.functional.logsigmoid(beta * margin_P)


def kl_estimate(logp_X: Tensor, reference_X: Tensor, kind: str) -> Tensor:
    """Return an estimate of KL(policy, reference) per token: ``k1``, ``abs``, ``k2`` or ``k3``.

    k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d with d = logp - reference; k3 is held within +-10, as in the published
    trainers, so that one far-off token cannot drown a batch.
    """
    difference_X = logp_X - reference_X
    if kind == "k1":
        return difference_X
    if kind == "abs":
        return difference_X.abs()
    if kind == "k2":
        return 0.5 * difference_X**2
    if kind == "k3":
        return (torch.exp(-difference_X) - 1 + difference_X).clamp(-10, 10)
    raise ValueError(f"unknown KL estimate {kind!r}")
