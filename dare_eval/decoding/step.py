"""What a transfer policy sees of one pass, and the ranking that most policies share.

Legend: R rows of the pass, M candidate positions of the current block in ascending column order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pass over the current block."""

    score_RM: Tensor
    """Score of each proposal, higher first; -inf where the candidate may not be committed."""
    tokens_RM: Tensor
    """Proposed tokens."""
    live_RM: Tensor
    """True where a mask may be committed; rows with fewer masks than M have False entries."""
    masks: list[int]
    """Masks of each row in the block."""
    due: list[int]
    """Tokens the schedule's budget asks for at this pass."""
    index: int
    """0-based pass of the block."""
    steps: int | None
    """Passes the budget spreads the block over; None without a budget."""
    fraction: float
    """Share of the remaining masks that the reverse process reveals now."""
    uniform_RM: Tensor | None
    """U(0, 1) draws per candidate from the row's own generator, for policies that set ``noise``."""
    overwrite: bool = False
    """Parity: the ranking may return candidates that are not masks."""

    def per_row(self, values: list[int]) -> Tensor:
        """Return per-row numbers as a column, [R, 1]."""
        return torch.tensor(values, device=self.score_RM.device)[:, None]


def best(step: Step, score_RM: Tensor, counts: list[int]) -> Tensor:
    """Return the ``counts`` best candidates of each row as a bool mask; ties go to the lowest column."""
    if step.overwrite:
        return _best_of_all(score_RM, counts)
    ranked_RM = ranks(score_RM.masked_fill(~step.live_RM, -torch.inf))
    return (ranked_RM < step.per_row(counts)) & step.live_RM


def ranks(score_RM: Tensor) -> Tensor:
    """Return each candidate's place when sorted by score, best first, ties by column, [R, M]."""
    order_RM = score_RM.sort(dim=-1, descending=True, stable=True).indices
    place_RM = torch.arange(order_RM.shape[1], device=order_RM.device).expand_as(order_RM)
    return torch.empty_like(order_RM).scatter_(-1, order_RM, place_RM)


def _best_of_all(score_RM: Tensor, counts: list[int]) -> Tensor:
    """Return what SDAR's top-k returns, committed positions included where too few masks remain."""
    chosen_RM = torch.zeros_like(score_RM, dtype=torch.bool)
    for row, count in enumerate(counts):
        chosen_RM[row, score_RM[row].topk(min(count, score_RM.shape[1])).indices] = True
    return chosen_RM
