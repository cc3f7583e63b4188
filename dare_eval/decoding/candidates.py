"""Which positions of the current block a pass looks at, and what the network proposes for them.

Only these positions pay for the head and the softmax. Normally they are the masks; with editing all response
positions of the block, since any may change.

Legend: R rows, K block length, M candidate positions, N considered positions of all rows, T columns, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.decoding.canvas import Canvas
from dare_eval.decoding.denoiser import Hidden
from dare_eval.decoding.rows import Rows
from dare_eval.decoding.sampler import ValueSampler
from dare_eval.decoding.schedule import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Positions of a pass, in ascending column order."""

    columns_RM: Tensor
    live_RM: Tensor
    """True where the position is a mask that may be committed."""
    considered_RM: Tensor | None
    """True where a proposal is wanted; None when it is wanted everywhere."""


def masked_positions(canvas: Canvas, rows: Rows, block: Block, masks: list[int]) -> Candidates:
    """Return the masks of the block; rows with fewer masks than others are filled up with dead entries."""
    open_RK = canvas.open_BT[rows.index_R][:, block.columns]
    most = max(masks)
    order_RM = torch.sort(~open_RK, dim=-1, stable=True).indices[:, :most]
    live_RM = open_RK.gather(-1, order_RM)
    everywhere = sum(masks) == most * len(masks)
    return Candidates(columns_RM=order_RM + block.start, live_RM=live_RM, considered_RM=None if everywhere else live_RM)


def first_position(rows: Rows, block: Block) -> Candidates:
    """Return the block's first position alone."""
    columns_RM = torch.full((len(rows), 1), block.start, device=rows.index_R.device)
    return Candidates(columns_RM=columns_RM, live_RM=torch.ones_like(columns_RM, dtype=torch.bool), considered_RM=None)


def all_positions(canvas: Canvas, rows: Rows, block: Block, *, prompt_too: bool) -> Candidates:
    """Return every position of the block; proposals are wanted for the response (and, on request, the prompt)."""
    columns_RM = torch.arange(block.start, block.stop, device=rows.index_R.device).expand(len(rows), -1)
    starts = [canvas.starts[row] for row in rows.ids]
    considered_RM = columns_RM >= torch.tensor(starts, device=columns_RM.device)[:, None]
    return Candidates(
        columns_RM=columns_RM,
        live_RM=canvas.open_BT[rows.column_R1, columns_RM],
        considered_RM=None if prompt_too or max(starts) <= block.start else considered_RM,
    )


def propose(
    sampler: ValueSampler, found: Candidates, hidden: Hidden, uniform_RM: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return proposed tokens and scores, [R, M]; entries not considered are token 0 with score -inf."""
    wanted_RM, shape, device = found.considered_RM, found.columns_RM.shape, found.columns_RM.device

    def flat(values: Tensor) -> Tensor:
        return values.flatten(0, 1) if wanted_RM is None else values[wanted_RM.to(values.device)]

    free_ND = None if hidden.free_RMD is None else flat(hidden.free_RMD)
    uniform_N = None if uniform_RM is None else flat(uniform_RM)
    # A network spread over devices ends on another one than it begins on; the canvas stays where it begins.
    tokens_N, score_N = (part.to(device) for part in sampler.propose(flat(hidden.seen_RMD), free_ND, uniform_N))
    if wanted_RM is None:
        return tokens_N.view(shape), score_N.view(shape)
    tokens_RM = torch.zeros_like(found.columns_RM)
    score_RM = torch.full(shape, -torch.inf, device=device)
    tokens_RM[wanted_RM], score_RM[wanted_RM] = tokens_N, score_N.to(score_RM.dtype)
    return tokens_RM, score_RM
