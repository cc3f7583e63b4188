"""Rollouts: the completions of a step, sampled by the loop that evaluation decodes with.

Every completion has a seed of its own, derived from the run, its step and its place, so completions of one prompt
are never copies and do not depend on the batch, the number of processes or what was sampled before. Which settings
are not given follow the family: masked networks decode by threshold with the dual cache, block networks by their
dynamic rule with the block cache, both exact or nearly so; what the update needs of log-probabilities it computes
itself. Leaves out rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.decoding import DecodeResult
from dare_eval.spec import DecodeSpec, policy_fields
from dare_train.draws import derive
from dare_train.rl.backends import Request, RolloutBackend
from dare_train.rl.config import RolloutSettings
from dare_train.rl.problems import Problem

THRESHOLD = 0.9
MASKED = {"policy": "threshold", "cache": "dual"}
BLOCK = {"policy": "dynamic", "cache": "block"}


def rollout_spec(settings: RolloutSettings, network: Any, fixed: Mapping[str, Any]) -> DecodeSpec:
    """Return how completions are decoded; ``fixed`` are settings that the algorithm is defined with.

    Raises ``UsageError`` for settings that contradict the family or each other.
    """
    given = settings.model_dump(include={"gen_length", "block_length", "steps", "temperature", "threshold"})
    chosen = {"temperature": 1.0, **fixed, **{key: value for key, value in given.items() if value is not None}}
    chosen |= settings.decoding
    for key, value in fixed.items():
        if key == "temperature" and settings.temperature is not None and value != 0.0:
            continue
        if key == "block_length" and chosen.get(key) != value:
            chosen.pop("steps", None)  # a number of steps belongs to the blocks it was given for
        chosen[key] = value
    family = MASKED if network.block_length is None else BLOCK
    policy = family["policy"] if settings.policy == "auto" else settings.policy
    if settings.policy == "auto" and chosen.get("steps"):
        policy = "quota"
    if "threshold" in policy_fields(policy):
        chosen.setdefault("threshold", THRESHOLD)
    if network.block_length is not None:
        chosen.setdefault("block_length", network.block_length)
    cache = family["cache"] if settings.cache == "auto" else settings.cache
    return DecodeSpec.build(network.family, policy=policy, cache=cache, **chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One decoded completion and what it answers."""

    problem: Problem
    place: int
    """Place of the problem in the run: the group."""
    number: int
    """Which of the completions of its problem."""
    seed: int
    result: DecodeResult
    text: str


Finished = Callable[[Sequence[Rollout]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Samples groups of completions."""

    backend: RolloutBackend
    tokenizer: Any
    spec: DecodeSpec
    group_size: int
    rows_per_batch: int | None = None
    seed: int = 0
    """Of the run."""

    def groups(
        self, keyed: Sequence[tuple[int, Problem]], *, states: bool, watched: int = 0, finished: Finished | None = None
    ) -> list[Rollout]:
        """Return ``group_size`` completions of every problem, in order; keys are the places of the problems.

        ``states`` keeps every pass of all rows, ``watched`` those of the first so many. ``finished`` is called
        with each decoded batch, so that its answers can be judged while the next is decoded.
        """
        rows = [(place, problem, number) for place, problem in keyed for number in range(self.group_size)]
        watched = watched if self.backend.traces else 0
        size = self.rows_per_batch or max(1, len(rows))
        found: list[Rollout] = []
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            seeds = [completion_seed(self.seed, place, number) for place, _, number in part]
            request = Request(
                prompts=[list(problem.prompt) for _, problem, _ in part],
                seeds=seeds,
                spec=self.spec,
                record=len(part) if states else max(0, min(len(part), watched - len(found))),
            )
            results = self.backend.generate(request)
            texts = self.texts(results)
            batch = [
                Rollout(problem=problem, place=place, number=number, seed=seed, result=result, text=text)
                for (place, problem, number), seed, result, text in zip(part, seeds, results, texts, strict=True)
            ]
            if finished is not None:
                finished(batch)
            found += batch
        return found

    def texts(self, results: Sequence[DecodeResult]) -> list[str]:
        """Return the responses as evaluation reads them."""
        return [
            str(text) for text in self.tokenizer.batch_decode([r.tokens for r in results], skip_special_tokens=True)
        ]


def completion_seed(seed: int, place: int, number: int, *more: int | str) -> int:
    """Return the seed of one completion: a hash of the run's seed, the problem's place and the number."""
    return derive(seed, "completion", place, number, *more)
