"""Estimate the log-likelihood of continuations: make a plan of noisy copies, evaluate them, add up.

Only the continuation is masked and scored. Copies with equal masks are evaluated once, so that short answers cost
at most 2^n - 1 forwards however large mc_num is. The options of one item share their random numbers, and an item's
numbers do not depend on what else is evaluated with it.

Legend: Q batches of strata, S copies, n tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dare_eval.decoding.canvas import check_ids
from dare_eval.decoding.likelihood.evaluate import NoisyCopy, log_probs
from dare_eval.decoding.likelihood.options import ElboResult, LikelihoodOptions
from dare_eval.decoding.likelihood.plans import Plan, make_plan
from dare_eval.decoding.loop import decode
from dare_eval.errors import UsageError
from dare_eval.networks.config import NetworkConfig
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.spec import DecodeSpec

Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a context and of its continuation."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One pair with its plan; ``copies`` are the distinct noisy copies, ``which_S`` names the one of each sample."""

    plan: Plan | None
    copies: list[NoisyCopy]
    which_S: list[int]
    n_tokens: int


def elbo(
    network: DiffusionNetwork,
    pairs: Sequence[Pair],
    options: LikelihoodOptions | None = None,
    *,
    groups: Sequence[str] | None = None,
) -> list[ElboResult]:
    """Return the estimate for each (context ids, continuation ids).

    ``groups`` names the item each pair belongs to: pairs of one group share random numbers. Without it, pairs with
    the same context do. Raises ``UsageError`` before the first forward for an estimator that does not fit the
    network, a token id outside the vocabulary or a sequence longer than the context.
    """
    options = options or LikelihoodOptions()
    estimator = resolve_estimator(options.estimator, network.config)
    block_length = options.block_length or network.config.block_length
    if network.config.block_length is None:
        block_length = None
    if groups is not None and len(groups) != len(pairs):
        raise UsageError("groups and pairs differ in length", seen=len(groups), allowed=f"{len(pairs)} group names")
    check_ids([[*context, *continuation] for context, continuation in pairs], network.config)
    names = groups if groups is not None else [",".join(map(str, context)) for context, _ in pairs]
    jobs = [
        _job(pair, estimator, block_length, options, name, network.config)
        for pair, name in zip(pairs, names, strict=True)
    ]
    _check_context(pairs, options, network.config)
    values = log_probs(
        network,
        [copy for job in jobs for copy in job.copies],
        block_length=block_length,
        cfg_scale=options.cfg_scale,
        batch_size=options.batch_size,
    )
    results, at = [], 0
    for job in jobs:
        results.append(_sum_up(job, values[at : at + len(job.copies)]))
        at += len(job.copies)
    return _with_greedy(network, pairs, results, block_length) if options.check_greedy else results


def resolve_estimator(name: str, config: NetworkConfig) -> str:
    """Return the estimator ``auto`` means for a network; raises ``UsageError`` for one that does not fit."""
    causal = config.block_length is not None
    if name == "auto":
        return "blocks" if causal else "bernoulli" if config.shift else "counts"
    if causal and name in ("counts", "bernoulli"):
        raise UsageError(
            f"estimator '{name}' noises the whole continuation, which a block-causal network never sees at once",
            seen=f"estimator = {name}",
            allowed="blocks, pseudo or ar",
            remedy="estimator = blocks",
        )
    if not causal and name == "blocks":
        allowed = "counts, bernoulli, pseudo or ar"
        raise UsageError("estimator 'blocks' needs a block-causal network", seen=name, allowed=allowed)
    return name


def closing_tokens(options: LikelihoodOptions, config: NetworkConfig) -> int:
    """Return how many tokens stand behind a continuation: the EOS that closes it, or none."""
    return int(_closes(options, resolve_estimator(options.estimator, config)))


def longest_pair(options: LikelihoodOptions, config: NetworkConfig) -> int:
    """Return the most tokens that a context and its continuation may have together.

    A closing EOS takes one place of the model's context; the greedy check decodes whole blocks of a block-causal
    network. Raises ``UsageError`` for an estimator that does not fit the network.
    """
    scored = config.canvas_length() - closing_tokens(options, config)
    if not options.check_greedy:
        return scored
    return min(scored, config.canvas_length(options.block_length or config.block_length))


def _closes(options: LikelihoodOptions, estimator: str) -> bool:
    return estimator == "bernoulli" if options.append_eos is None else options.append_eos


def _job(
    pair: Pair, estimator: str, block_length: int | None, options: LikelihoodOptions, group: str, config: NetworkConfig
) -> _Job:
    eos = config.eos_id if _closes(options, estimator) else None
    # Nothing predicts the first token of a sequence for a shifted network: it is given.
    first = int(config.shift)
    context, continuation = list(pair[0]), list(pair[1])
    ids = tuple(context + continuation + ([] if eos is None else [eos]))
    start = max(len(context), first)
    count = len(context) + len(continuation) - start
    if count < 1:
        return _Job(None, [], [], len(continuation))
    column_n = torch.arange(start, start + count)
    block_n = torch.zeros_like(column_n) if block_length is None else column_n // block_length
    plan = make_plan(estimator, block_n, options, group)
    distinct: dict[tuple[int, ...], int] = {}
    which = []
    for row in plan.mask_Sn.tolist():
        masked = tuple(start + place for place, hidden in enumerate(row) if hidden)
        which.append(distinct.setdefault(masked, len(distinct)) if masked else -1)
    copies = [NoisyCopy(ids, start, masked) for masked in distinct]
    return _Job(plan, copies, which, len(continuation))


def _check_context(pairs: Sequence[Pair], options: LikelihoodOptions, config: NetworkConfig) -> None:
    limit = longest_pair(options, config)
    longest = max((len(context) + len(continuation) for context, continuation in pairs), default=0)
    if longest > limit:
        closing = ", one more for the EOS that closes them" if closing_tokens(options, config) else ""
        raise UsageError(
            "context and continuation are longer than the model's context",
            seen=f"{longest} tokens{closing}",
            allowed=f"at most {limit} tokens",
            remedy="shorten the context (fewer shots)",
        )


def _sum_up(job: _Job, values: list[Tensor]) -> ElboResult:
    """Return the mean over batches and its standard error."""
    if job.plan is None:
        return ElboResult(loglik=0.0, n_tokens=job.n_tokens, stderr=0.0, nfe=0)
    sample_S = torch.zeros(len(job.which_S), dtype=torch.float64)
    for number, which in enumerate(job.which_S):
        if which >= 0:
            weight_m = job.plan.weight_Sn[number][job.plan.mask_Sn[number]]
            sample_S[number] = (weight_m * values[which]).sum()
    batch_Q = sample_S.view(job.plan.batches, -1).sum(-1)
    return ElboResult(
        loglik=float(batch_Q.mean()),
        n_tokens=job.n_tokens,
        stderr=0.0 if job.plan.exact else _stderr(batch_Q, sample_S),
        nfe=len(job.copies),
    )


def _stderr(batch_Q: Tensor, sample_S: Tensor) -> float:
    """Return the standard error from independent batches; from one batch, that of unstratified copies (a bound)."""
    if len(batch_Q) > 1:
        return float(batch_Q.std() / math.sqrt(len(batch_Q)))
    copies = len(sample_S)
    return float((sample_S * copies).std() / math.sqrt(copies)) if copies > 1 else math.nan


def _with_greedy(
    network: DiffusionNetwork, pairs: Sequence[Pair], results: list[ElboResult], block_length: int | None
) -> list[ElboResult]:
    """Return the results with the greedy check: one token per pass, the most confident first."""
    checked = list(results)
    for count in {result.n_tokens for result in results}:
        numbers = [number for number, result in enumerate(results) if result.n_tokens == count]
        if not count:
            for number in numbers:
                checked[number] = replace(results[number], greedy=True)
            continue
        spec = DecodeSpec.build(
            network.config.family, gen_length=count, block_length=block_length or count, early_stop="none"
        )
        decoded = decode(network, [list(pairs[number][0]) for number in numbers], spec)
        for number, result in zip(numbers, decoded, strict=True):
            same = result.response[:count] == list(pairs[number][1])
            checked[number] = replace(results[number], greedy=same, nfe=results[number].nfe + result.nfe)
    return checked
