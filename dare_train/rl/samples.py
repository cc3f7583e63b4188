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
    ids_T = torch.tensor(trajectory.prompt + trajectory.response, dtype=torch.long)
    eos = trajectory.response.index(facts.eos_id) if facts.eos_id in trajectory.response else None
    return _sample(trajectory, ids_T, eos, advantage, region, facts)


def make_sample(
    trajectory: Trajectory, response_R: Tensor, advantage: float, region: str, facts: NetworkFacts
) -> Sample:
    """Return the sample of prompt and ``response_R``; tokens that are still masks never count."""
    ids_T = torch.cat([torch.tensor(trajectory.prompt, dtype=torch.long), response_R])
    ends = (response_R == facts.eos_id).nonzero().flatten()
    return _sample(trajectory, ids_T, int(ends[0]) if len(ends) else None, advantage, region, facts)


def _sample(
    trajectory: Trajectory, ids_T: Tensor, eos: int | None, advantage: float, region: str, facts: NetworkFacts
) -> Sample:
    """Return the sample of prompt and response; ``eos`` is the place of the first EOS in the response."""
    start, column_T = len(trajectory.prompt), torch.arange(len(ids_T))
    answer_T = column_T >= start
    loss_T = answer_T & (ids_T != facts.mask_id)
    if region != "all" and eos is not None:
        last, block = start + eos, facts.block_length
        if region == "to_eos_block" and block:
            last = (last // block + 1) * block - 1
        loss_T &= column_T <= last
    return Sample(ids_T=ids_T, answer_T=answer_T, loss_T=loss_T, advantage=advantage, trajectory=trajectory)


def scored(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the completions that have a reward; one whose verifier failed says nothing about the others."""
    return [trajectory for trajectory in trajectories if trajectory.reward is not None]
