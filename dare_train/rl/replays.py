"""Corruptors that replay what happened: no random numbers, the states come from the rollout.

Shape suffixes: M rows, T positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import DataError
from dare_train.draws import FullDraws
from dare_train.rl.algorithm import NetworkFacts
from dare_train.rl.noise import LeftToRightStates, Noise
from dare_train.rl.samples import Sample


@dataclass(frozen=True, slots=True)
class ReplaySteps:
    """Each token scored once, in the state just before the step that fixed it (CJ-GRPO, arXiv 2509.23924).

    Block-causal networks replay all blocks at once: row k shows every block before its own k-th step.
    """

    times = 1

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return one row per step that fixed a counted token."""
        step_T = _steps(sample)
        if facts.block_length is not None:
            step_T = _within_blocks(step_T, facts.block_length)
        step_M = torch.unique(step_T[sample.loss_T])
        never_T = sample.answer_T & (step_T < 0)
        hidden_MT = sample.answer_T & ((step_T >= step_M[:, None]) | never_T)
        noisy_MT = sample.ids_T.expand(hidden_MT.shape).masked_fill(hidden_MT, facts.mask_id)
        return Noise.of(noisy_MT, (step_T == step_M[:, None]) & sample.loss_T, step_M=step_M)


@dataclass(frozen=True, slots=True)
class RecordedState:
    """Every masked token of a recorded state scored at once (MDPO, d-TreeRPO); one row."""

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return the recorded state as the one row."""
        assert sample.state_T is not None
        target_T = (sample.state_T == facts.mask_id) & sample.loss_T
        noise = Noise.of(sample.state_T[None], target_T[None], step_M=torch.tensor([sample.place]))
        if sample.gain_T is None:
            return noise
        return Noise(
            noise.states, noise.row_X, noise.column_X, noise.weight_X, noise.step_M, sample.gain_T[noise.column_X]
        )


@dataclass(frozen=True, slots=True)
class LeftToRight:
    """Each token scored with the ones before it visible and itself and all later ones masked (JustGRPO)."""

    times = 1

    def __call__(self, sample: Sample, draws: FullDraws, facts: NetworkFacts) -> Noise:
        """Return as many rows as tokens count, built when they are scored."""
        place_M = sample.loss_T.nonzero().flatten()
        states = LeftToRightStates(sample.ids_T, sample.answer_T, place_M, facts.mask_id)
        row_X = torch.arange(len(place_M))
        return Noise(states, row_X, place_M, torch.ones(len(place_M)), row_X)


def _steps(sample: Sample) -> Tensor:
    """Return the step that fixed each position, -1 for the prompt and for what was never fixed."""
    steps = sample.trajectory.step_map
    assert steps is not None
    answer = int(sample.answer_T.sum())
    if len(steps) != answer:
        raise DataError("the step map has another length than the response", seen=f"{len(steps)} and {answer}")
    step_T = torch.full_like(sample.ids_T, -1)
    step_T[sample.answer_T] = torch.tensor(steps, dtype=torch.long)
    if bool((step_T[sample.loss_T] < 0).any()):
        raise DataError("a token of the response was never fixed according to its step map", seen=f"{steps}")
    return step_T


def _within_blocks(step_T: Tensor, block_length: int) -> Tensor:
    """Return the steps numbered from 0 within each block (grid from position 0); -1 stays."""
    found_T = torch.full_like(step_T, -1)
    for start in range(0, len(step_T), block_length):
        block = slice(start, start + block_length)
        fixed = step_T[block] >= 0
        if bool(fixed.any()):
            local = torch.unique(step_T[block][fixed], return_inverse=True)[1]
            found_T[block][fixed] = local
    return found_T
