"""From decoded completions to what an update wants, and to what a person browses.

A trajectory keeps what the algorithm's recorder asks for. ``samples.jsonl`` keeps some completions of some rollouts
with text, verdict and the order in which their tokens were fixed (``dare-train show RUN``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dare_eval.decoding.results import trim
from dare_eval.spec import DecodeSpec
from dare_train.rl.rewards import Answer, Outcome
from dare_train.rl.rollout import Rollout
from dare_train.rl.trajectory import Trajectory, Tree
from dare_train.rl.watch import score_temperature


def answer_of(rollout: Rollout, spec: DecodeSpec, text: str | None = None, tokens: int | None = None) -> Answer:
    """Return what a judge sees of a completion, or of another ``text`` in its place."""
    problem = rollout.problem
    return Answer(
        prompt=problem.text,
        response=problem.prefix + (rollout.text if text is None else text),
        scorer=problem.scorer,
        reference=problem.reference,
        context=problem.context,
        tokens=rollout.result.generated_tokens if tokens is None else tokens,
        limit=spec.gen_length,
        key=problem.key,
    )


def predictions(rollout: Rollout, network: Any, spec: DecodeSpec) -> list[list[int]]:
    """Return the response that each recorded pass predicted, trimmed: its state with every prediction filled in.

    Positions that a pass did not predict (later blocks) are left out.
    """
    trace = rollout.result.trace
    assert trace is not None
    filled_SG = torch.where(
        (trace.state_SG == network.mask_id) & (trace.proposal_SG >= 0), trace.proposal_SG, trace.state_SG
    )
    ends = frozenset((network.eos_id, *network.stop_ids, *spec.stop_ids))
    found = []
    for row in filled_SG.tolist():
        tokens, _ = trim(row, network.eos_id, ends, spec.gen_length)
        found.append([token for token in tokens if token != network.mask_id])
    return found


def trajectory_of(
    rollout: Rollout,
    outcome: Outcome,
    spec: DecodeSpec,
    *,
    states: bool,
    step_rewards: Sequence[float | None] | None = None,
    tree: Tree | None = None,
) -> Trajectory:
    """Return the trajectory of one completion; with a reward of None when any part of it is unscored."""
    result, trace = rollout.result, rollout.result.trace
    lost = step_rewards is not None and any(reward is None for reward in step_rewards)
    kept: dict[str, Any] = {}
    if states:
        assert trace is not None
        kept = {
            "states_KR": trace.state_SG,
            "proposals_KR": trace.proposal_SG,
            "confidence_KR": trace.score_SG,
            "step_rewards": None if step_rewards is None else tuple(reward or 0.0 for reward in step_rewards),
        }
    return Trajectory(
        prompt=rollout.problem.prompt,
        response=tuple(result.response),
        group=rollout.place,
        reward=None if lost else outcome.reward,
        step_map=tuple(result.step_map),
        tree=tree,
        rollout_logps=_logps(rollout) if trace is not None and score_temperature(spec) == 1.0 else None,
        seed=rollout.seed,
        temperature=spec.temperature or 1.0,
        nfe=result.nfe,
        eos=result.stop != "length",
        truncated=result.stop == "length",
        **kept,
    )


def _logps(rollout: Rollout) -> tuple[float, ...]:
    """Return log p of each token as its pass saw it; 0 where a token was never decoded."""
    trace = rollout.result.trace
    assert trace is not None
    score_SG = torch.where(trace.committed_SG, trace.score_SG, torch.ones(()))
    return tuple(score_SG.clamp_min(1e-30).log().sum(0).tolist()) if len(score_SG) else ()


def tree_rewards(tree: Tree, outcomes: Sequence[Outcome]) -> tuple[Tree, bool]:
    """Return the tree with its leaves' rewards, and whether any is known.

    An unscored leaf takes the mean of the scored ones, which moves no advantage of its ancestors.
    """
    import dataclasses

    known = [outcome.reward for outcome in outcomes if outcome.reward is not None]
    mean = sum(known) / len(known) if known else 0.0
    rewards = tuple(mean if outcome.reward is None else outcome.reward for outcome in outcomes)
    return dataclasses.replace(tree, leaf_rewards=rewards), bool(known)


def sample_line(
    step: int, rollout_number: int, group: Sequence[Rollout], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Return one line of ``samples.jsonl``: a problem with its completions."""
    problem = group[0].problem
    completions = [
        {
            "text": rollout.text,
            "reward": outcome.reward,
            "exact": outcome.exact,
            "error": outcome.error or None,
            "tokens": rollout.result.generated_tokens,
            "nfe": rollout.result.nfe,
            "stop": rollout.result.stop,
            "step_map": rollout.result.step_map,
        }
        for rollout, outcome in zip(group, outcomes, strict=True)
    ]
    reference = problem.reference if isinstance(problem.reference, str | int | float | dict | list) else None
    return {
        "step": step,
        "rollout": rollout_number,
        "key": problem.key,
        "prompt": problem.text,
        "reference": reference,
        "completions": completions,
    }
