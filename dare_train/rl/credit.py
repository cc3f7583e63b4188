"""Advantage parts: from the rewards of a batch to samples that each carry an advantage.

    GroupAdvantage   reward of a completion against the others of its prompt
    StepAdvantage    reward of every intermediate prediction, most telling steps only (MDPO)
    TreeAdvantage    value of a tree node against its siblings (d-TreeRPO)

Shape suffixes: B completions, K steps, N nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dare_eval.errors import DataError
from dare_train.advantages import BASELINES, group_advantages
from dare_train.rl.algorithm import NetworkFacts
from dare_train.rl.checks import one_of, within
from dare_train.rl.samples import Sample, completion, make_sample, scored
from dare_train.rl.trajectory import Trajectory, Tree

Gather = Callable[[dict[str, list[float]]], dict[str, list[float]]]
"""Joins the lists of all processes (``World.gather``)."""


MOST_NODES = 10**6
"""More than any tree has; makes the key of a parent unique in the batch."""


def alone(values: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return the lists of the only process."""
    return values


@dataclass(frozen=True, slots=True)
class GroupAdvantage:
    """Reward minus the baseline of the group; see ``dare_train.advantages``."""

    baseline: str = "mean"
    by_std: bool = False
    delta: float = 1e-6

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("advantage.baseline", self.baseline, BASELINES)
        within("advantage.delta", self.delta, 0.0)

    def __call__(
        self, trajectories: Sequence[Trajectory], facts: NetworkFacts, region: str, gather: Gather
    ) -> list[Sample]:
        """Return one sample per completion that has a reward."""
        kept = scored(trajectories)
        advantages = self.of([float(t.reward or 0.0) for t in kept], [t.group for t in kept])
        return [completion(t, a, region, facts) for t, a in zip(kept, advantages, strict=True)]

    def of(self, rewards: Sequence[float], groups: Sequence[int]) -> list[float]:
        """Return the advantage of each reward."""
        found_B = group_advantages(
            torch.tensor(rewards, dtype=torch.float64),
            torch.tensor(groups),
            baseline=self.baseline,
            by_std=self.by_std,
            delta=self.delta,
        )
        return [float(value) for value in found_B]


@dataclass(frozen=True, slots=True)
class StepAdvantage:
    """Scores of steps: gain over the step before, plus one, plus the mean of later rewards (MDPO, arXiv 2508.13148).

    Only the ``top_k`` steps with the largest sum of absolute advantages over the batch are trained on.
    """

    top_k: int = 16
    by_std: bool = True
    delta: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        within("advantage.top_k", self.top_k, 1)
        within("advantage.delta", self.delta, 0.0)

    def __call__(
        self, trajectories: Sequence[Trajectory], facts: NetworkFacts, region: str, gather: Gather
    ) -> list[Sample]:
        """Return one sample per completion and chosen step; its tokens are those predicted there."""
        kept = scored(trajectories)
        advantage_BK = self.of([t.step_rewards or () for t in kept], [t.group for t in kept])
        chosen = self.choose(advantage_BK, gather)
        samples = []
        for trajectory, row in zip(kept, advantage_BK, strict=True):
            steps = [step for step in chosen if step < len(trajectory.step_rewards or ())]
            samples += [_step_sample(trajectory, step, float(row[step]), facts) for step in steps]
        return samples

    def of(self, rewards: Sequence[Sequence[float]], groups: Sequence[int]) -> Tensor:
        """Return the advantage of every step, [B, K] (0 behind the last step of a shorter run)."""
        longest = max((len(row) for row in rewards), default=0)
        score_BK = torch.full((len(rewards), longest), torch.nan, dtype=torch.float64)
        for row, found in enumerate(rewards):
            score_BK[row, : len(found)] = step_scores(torch.tensor(found, dtype=torch.float64))
        group_B, found_BK = torch.tensor(groups), torch.zeros_like(score_BK)
        for step in range(longest):
            there = score_BK[:, step].isfinite()
            found_BK[there, step] = group_advantages(
                score_BK[there, step], group_B[there], by_std=self.by_std, delta=self.delta
            )
        return found_BK

    def choose(self, advantage_BK: Tensor, gather: Gather = alone) -> list[int]:
        """Return the steps to train on, in order; all processes choose the same."""
        total_K = advantage_BK.abs().sum(0)
        joined = gather({"step": [float(k) for k in range(len(total_K))], "size": total_K.tolist()})
        size: dict[int, float] = {}
        for step, value in zip(joined["step"], joined["size"], strict=True):
            size[int(step)] = size.get(int(step), 0.0) + value
        return sorted(sorted(size, key=lambda step: -size[step])[: self.top_k])


@dataclass(frozen=True, slots=True)
class TreeAdvantage:
    """Value of a node minus the mean value of its siblings; values are means over the leaves below, level by level."""

    def __call__(
        self, trajectories: Sequence[Trajectory], facts: NetworkFacts, region: str, gather: Gather
    ) -> list[Sample]:
        """Return one sample per node but the root, scored in the state of its parent."""
        samples: list[Sample] = []
        for number, trajectory in enumerate(scored(trajectories)):
            if trajectory.tree is not None:
                samples += _transitions(trajectory, trajectory.tree, number, facts, region)
        return samples


def step_scores(reward_K: Tensor) -> Tensor:
    """Return MDPO's score of each step from the rewards of the steps of one completion, [K]."""
    before_K = torch.cat([torch.zeros(1, dtype=reward_K.dtype), reward_K[:-1]])
    later_K = reward_K.flip(0).cumsum(0).flip(0) - reward_K
    count_K = torch.arange(len(reward_K) - 1, -1, -1)
    mean_K = torch.where(count_K > 0, later_K / count_K.clamp_min(1), reward_K)
    return reward_K - before_K + 1.0 + mean_K


def tree_values(tree: Tree) -> list[float]:
    """Return the value of each node: its reward at a leaf, else the mean value of its children."""
    leaves = tree.leaves
    if len(leaves) != len(tree.leaf_rewards):
        raise DataError("a rollout tree needs one reward per leaf", seen=f"{len(leaves)}, {len(tree.leaf_rewards)}")
    value = dict(zip(leaves, tree.leaf_rewards, strict=True))
    for node in reversed(range(len(tree.parent))):
        if node not in value:
            below = [value[child] for child, parent in enumerate(tree.parent) if parent == node]
            value[node] = sum(below) / len(below)
    return [value[node] for node in range(len(tree.parent))]


def tree_advantages(tree: Tree) -> list[float]:
    """Return the advantage of each node over its siblings; an only child has none to beat and the root gets 0."""
    value = tree_values(tree)
    found = [0.0] * len(value)
    for node, parent in enumerate(tree.parent[1:], start=1):
        others = [value[other] for other, above in enumerate(tree.parent) if above == parent and other != node]
        found[node] = value[node] - (sum(others) / len(others) if others else 0.0)
    return found


def _step_sample(trajectory: Trajectory, step: int, advantage: float, facts: NetworkFacts) -> Sample:
    assert trajectory.states_KR is not None
    assert trajectory.proposals_KR is not None
    assert trajectory.confidence_KR is not None
    state_R, proposal_R = trajectory.states_KR[step], trajectory.proposals_KR[step]
    response_R = torch.where(proposal_R >= 0, proposal_R, state_R)
    sample = make_sample(trajectory, response_R, advantage, "all", facts)
    prompt = torch.tensor(trajectory.prompt, dtype=torch.long)
    gain_T = torch.cat([torch.zeros(len(prompt)), trajectory.confidence_KR[step].nan_to_num(0.0).float()])
    return replace(sample, place=step, state_T=torch.cat([prompt, state_R]), gain_T=gain_T)


def _transitions(trajectory: Trajectory, tree: Tree, number: int, facts: NetworkFacts, region: str) -> list[Sample]:
    prompt = torch.tensor(trajectory.prompt, dtype=torch.long)
    advantages = tree_advantages(tree)
    samples = []
    for node, parent in enumerate(tree.parent[1:], start=1):
        sample = make_sample(trajectory, tree.states_NR[node], advantages[node], region, facts)
        state_T = torch.cat([prompt, tree.states_NR[parent]])
        samples.append(replace(sample, place=node, state_T=state_T, siblings=number * MOST_NODES + parent))
    return samples
