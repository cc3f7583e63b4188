"""The block schedule: which columns are decoded one after the other, and how many tokens are due at each pass.

Four budgets: equal steps (LLaDA: the block's masks over its steps; block-causal families: the block length over
its steps), Dream's time steps, ascending step size (ASS), and a fixed least number. Policies without a budget
ignore what is due.

Sources: LLaDA generate.py; Dream generation_utils (time grid linspace(1, eps, steps + 1), float32 arithmetic);
EOSER/ASS (arXiv 2509.23924).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dare_eval.decoding.canvas import Canvas
from dare_eval.spec import DecodeSpec


@dataclass(frozen=True, slots=True)
class Block:
    """One block: columns [start, stop)."""

    index: int
    start: int
    stop: int
    first_step: int = 0
    """Global index of its first pass (ascending schedule)."""
    steps: int | None = None
    """Passes it takes, where the schedule fixes them."""

    @property
    def columns(self) -> slice:
        """Its columns as a slice."""
        return slice(self.start, self.stop)

    @property
    def length(self) -> int:
        """Number of columns K."""
        return self.stop - self.start


def plan_blocks(spec: DecodeSpec, canvas: Canvas) -> list[Block]:
    """Return the blocks in decoding order."""
    start = canvas.first_block
    if spec.schedule == "ascending":
        return _ascending_blocks(spec, start)
    count = -(-(canvas.width - start) // spec.block_length)
    size = spec.block_length
    return [Block(i, start + i * size, start + (i + 1) * size, steps=spec.block_steps) for i in range(count)]


def _ascending_blocks(spec: DecodeSpec, start: int) -> list[Block]:
    """Return blocks whose sizes double: the last takes half of the response and the remainder in one pass."""
    assert spec.steps is not None
    if spec.blocks == 1:
        return [Block(0, start, start + spec.gen_length, steps=spec.steps)]
    levels = spec.gen_length.bit_length() - 1
    tail = [2 ** (levels - 1) + 1 + spec.gen_length - 2**levels]
    tail += [2 ** (levels - 1 - i) for i in range(1, spec.blocks - 1)]
    sizes = [spec.gen_length - sum(tail), *reversed(tail)]
    steps = [levels - len(tail)] + [1] * len(tail)
    blocks, step = [], 0
    for index, (size, count) in enumerate(zip(sizes, steps, strict=True)):
        blocks.append(Block(index, start, start + size, first_step=step, steps=count))
        start, step = start + size, step + count
    return blocks


class Budget:
    """Tokens due per row at a pass of a block."""

    def __init__(self, spec: DecodeSpec, *, causal: bool) -> None:
        self.spec, self.causal = spec, causal
        self.least = 0 if "zero_commit_steps" in spec.parity else 1
        self.overwrite = "overwrite_committed" in spec.parity
        self.fractions = _time_fractions(spec.block_steps, spec.eps) if spec.eps and spec.block_steps else None

    def due(self, block: Block, index: int, masks: list[int], at_start: list[int]) -> list[int]:
        """Return the tokens due at pass ``index``, given each row's masks now and when the block began."""
        if block.steps is None:
            return [min(self.spec.min_transfer or 1, left) for left in masks]
        if index >= block.steps - 1 and not self.overwrite:
            return list(masks)
        if self.spec.schedule == "ascending":
            wanted = [2 ** (block.first_step + index)] * len(masks)
        elif self.fractions is not None:
            wanted = [int(torch.tensor(float(left)) * self.fractions[index]) for left in masks]
        else:
            totals = [block.length] * len(masks) if self.causal else at_start
            wanted = [share(total, block.steps, index) for total in totals]
        if self.overwrite:
            return wanted
        return [min(max(count, self.least), left) for count, left in zip(wanted, masks, strict=True)]

    def reveal_fraction(self, block: Block, index: int) -> float:
        """Return the share of the remaining masks that the reverse process reveals at pass ``index``."""
        if block.steps is None or index >= block.steps - 1:
            return 1.0
        return 1.0 / (block.steps - index) if self.fractions is None else float(self.fractions[index].item())

    def progress(self, block: Block, index: int) -> float:
        """Return EOSER's time in [0, 1]; as published, ``index`` restarts per block and the total does not.

        It stays at 1 in passes behind the planned ones (policy ``carry`` prolongs a block).
        """
        total = self.spec.steps or 1
        if self.spec.schedule == "ascending":
            return min(float((1 << (block.first_step + index + 1)) - 1) / (1 << total), 1.0)
        return min(index / (total - 1), 1.0) if total > 1 else 1.0


def share(total: int, steps: int, index: int) -> int:
    """Return step ``index``'s part of ``total`` spread over ``steps``, the remainder on the first ones."""
    return total // steps + (index < total % steps)


def _time_fractions(steps: int, eps: float) -> torch.Tensor:
    time = torch.linspace(1.0, eps, steps + 1)
    return 1 - time[1:] / time[:-1]
