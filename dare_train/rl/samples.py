"""Samples: the sequences an update scores, each with its advantage.

A completion is one sample; of a recorded denoising run each chosen step is one, of a rollout tree each child.

Shape suffixes: T positions (prompt, then the whole response), R response positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.rl.algorithm import NetworkFacts
from dare_train.rl.trajectory import Trajectory

LOSS_REGIONS = ("to_first_eos", "to_eos_block", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sequence whose response tokens are scored."""

    ids_T: Tensor
    answer_T: Tensor
    """The whole response."""
    loss_T: Tensor
    """Response tokens that count."""
    advantage: float
    trajectory: Trajectory
    place: int = 0
    """Step or tree node; 0 for a whole completion."""
    state_T: Tensor | None = None
    """Recorded state in which the tokens are scored."""
    gain_T: Tensor | None = None
    siblings: int = -1
    """Samples of one parent state share it (trees)."""

    @property
    def prompt_T(self) -> Tensor:
        """Prompt positions."""
        return ~self.answer_T


def completion(trajectory: Trajectory, advantage: float, region: str, facts: NetworkFacts) -> Sample:
    """Return the sample of a whole completion."""
    response_R = torch.tensor(trajectory.response, dtype=torch.long)
    return make_sample(trajectory, response_R, advantage, region, facts)


def make_sample(
    trajectory: Trajectory, response_R: Tensor, advantage: float, region: str, facts: NetworkFacts
) -> Sample:
    """Return the sample of prompt and ``response_R``; tokens that are still masks never count."""
    prompt = trajectory.prompt
    ids_T = torch.cat([torch.tensor(prompt, dtype=torch.long), response_R])
    answer_T = torch.arange(len(ids_T)) >= len(prompt)
    loss_T = answer_T & (ids_T != facts.mask_id)
    if region != "all":
        block = facts.block_length if region == "to_eos_block" else None
        loss_T &= _to_first_eos(ids_T, len(prompt), facts.eos_id, block)
    return Sample(ids_T=ids_T, answer_T=answer_T, loss_T=loss_T, advantage=advantage, trajectory=trajectory)


def _to_first_eos(ids_T: Tensor, prompt_length: int, eos_id: int, block: int | None) -> Tensor:
    """Return True up to the first EOS of the response, or to the end of its block; everywhere without one."""
    column_T = torch.arange(len(ids_T))
    ends = ((ids_T == eos_id) & (column_T >= prompt_length)).nonzero().flatten()
    if not len(ends):
        return torch.ones_like(ids_T, dtype=torch.bool)
    last = int(ends[0])
    if block:
        last = (last // block + 1) * block - 1
    return column_T <= last


def scored(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the completions that have a reward; one whose verifier failed says nothing about the others."""
    return [trajectory for trajectory in trajectories if trajectory.reward is not None]
