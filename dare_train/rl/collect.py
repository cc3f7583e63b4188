"""One rollout with its verdicts: sample groups or trees, judge them meanwhile, build what the update wants."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from dare_train.rl.backends import RolloutBackend
from dare_train.rl.parts import Parts
from dare_train.rl.problems import Problem
from dare_train.rl.records import answer_of, predictions, trajectory_of, tree_rewards
from dare_train.rl.reward_pool import Pending
from dare_train.rl.rewards import Outcome
from dare_train.rl.rollout import Rollout, Sampler
from dare_train.rl.trajectory import Trajectory
from dare_train.rl.trees import build_tree, sample_trees

T = TypeVar("T")
Groups = list[list[Rollout]]
Verdicts = list[list[Outcome]]


class Clock:
    """Wall seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last_s = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under ``name``."""
        now_s = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now_s - self._last_s
        self._last_s = now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A rollout of this process: completions by problem, their verdicts, and the update's records."""

    groups: Groups
    outcomes: Verdicts
    trajectories: list[Trajectory]
    reward_calls: int

    @property
    def rows(self) -> list[Rollout]:
        """All completions, in order."""
        return [rollout for group in self.groups for rollout in group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Samples and judges as one recorder wants it."""

    parts: Parts
    backend: RolloutBackend
    recorder: str

    def collect(self, keyed: list[tuple[int, Problem]], times: Clock) -> Collected:
        """Return the rollout of the problems, each with its place in the run."""
        groups, pending = self._sample(keyed)
        times.lap("rollout_s")
        steps = self._judge_steps(groups) if self.recorder == "states" else None
        outcomes = _cut([outcome for part in pending for outcome in part.result()], list(map(len, groups)))
        # Verdicts have time limits: processes that share rows go by one of them.
        groups, outcomes, steps = self.parts.world.agreed((groups, outcomes, steps))
        times.lap("reward_s")
        if self.recorder == "tree":
            trajectories = self._trees(groups, outcomes)
        else:
            trajectories = self._completions(groups, outcomes, steps)
        calls = sum(map(len, groups)) + sum(map(len, steps or ()))
        return Collected(groups=groups, outcomes=outcomes, trajectories=trajectories, reward_calls=calls)

    def _sample(self, keyed: list[tuple[int, Problem]]) -> tuple[Groups, list[Pending]]:
        """Return the completions of each problem and the verdicts that are being made."""
        parts, pending = self.parts, list[Pending]()

        def judge(batch: Sequence[Rollout]) -> None:
            pending.append(parts.rewards.submit([answer_of(rollout, parts.spec) for rollout in batch]))

        sampler = Sampler(
            backend=self.backend,
            tokenizer=parts.tokenizer,
            spec=parts.spec,
            group_size=parts.group_size,
            rows_per_batch=parts.rows_per_batch,
            seed=parts.seed,
        )
        watched = parts.watcher.rows
        if self.recorder == "tree":
            mask_id = parts.network.mask_id
            return sample_trees(sampler, keyed, parts.tree, mask_id=mask_id, watched=watched, finished=judge), pending
        rows = sampler.groups(keyed, states=self.recorder == "states", watched=watched, finished=judge)
        return _cut(rows, [parts.group_size] * len(keyed)), pending

    def _judge_steps(self, groups: Groups) -> Verdicts:
        """Return the verdicts on what each recorded pass of each completion predicted."""
        parts = self.parts
        rows = [rollout for group in groups for rollout in group]
        tokens = [predictions(rollout, parts.network, parts.spec) for rollout in rows]
        texts = iter(parts.tokenizer.batch_decode([ids for row in tokens for ids in row], skip_special_tokens=True))
        answers = [
            answer_of(rollout, parts.spec, str(next(texts)), len(ids))
            for rollout, row in zip(rows, tokens, strict=True)
            for ids in row
        ]
        return _cut(parts.rewards.submit(answers).result(), list(map(len, tokens)))

    def _completions(self, groups: Groups, outcomes: Verdicts, steps: Verdicts | None) -> list[Trajectory]:
        rows = [rollout for group in groups for rollout in group]
        flat = [outcome for group in outcomes for outcome in group]
        found = []
        for place, (rollout, outcome) in enumerate(zip(rows, flat, strict=True)):
            rewards = None if steps is None else [step.reward for step in steps[place]]
            states = self.recorder == "states"
            found.append(trajectory_of(rollout, outcome, self.parts.spec, states=states, step_rewards=rewards))
        return found

    def _trees(self, groups: Groups, outcomes: Verdicts) -> list[Trajectory]:
        parts, found = self.parts, list[Trajectory]()
        for group, judged in zip(groups, outcomes, strict=True):
            bare = build_tree(group, parts.spec, parts.tree, parts.network.mask_id)
            tree, known = tree_rewards(bare, judged)
            mean = sum(tree.leaf_rewards) / len(tree.leaf_rewards)
            whole = Outcome(reward=mean if known else None)
            found.append(trajectory_of(group[0], whole, parts.spec, states=False, tree=tree))
        return found


def _cut(rows: list[T], sizes: list[int]) -> list[list[T]]:
    """Return ``rows`` cut into consecutive lists of the given sizes."""
    found, start = [], 0
    for size in sizes:
        found.append(rows[start : start + size])
        start += size
    return found
