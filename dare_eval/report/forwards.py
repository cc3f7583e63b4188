"""How many forwards a decode spec takes and over how many columns, from the spec alone: exact, or bounds.

A policy with a step budget takes that many; one that commits by confidence takes between one pass per block and one
per token. A response may also end early, which lowers the lower bound of families that stop after a block. Runs
nothing; what a model really needs is a matter of its confidence (``dare-eval plan --probe``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dare_eval.spec import DecodeSpec, family_traits

BUDGETED = ("quota", "entropy", "margin", "random", "sequential")
"""Policies that take exactly the steps they are given."""
BOUNDED = ("origin", "dynamic")
"""Policies that take at most those steps; any other may take a pass per token."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one row costs."""

    nfe: float
    """Forwards."""
    columns: float
    """Query columns over all forwards."""
    pairs: float
    """Query columns times key columns, over all forwards: what attention multiplies."""
    candidates: float
    """Positions that logits are computed for."""

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def passes_per_block(spec: DecodeSpec) -> tuple[int, int]:
    """Return the fewest and most passes that fill one block (ascending schedule: the whole response in one)."""
    block = spec.block_length
    if spec.schedule == "ascending":
        return (spec.steps or 1,) * 2
    budget = None if spec.block_steps is None else min(spec.block_steps, block)
    extra = spec.max_post_steps or 0
    if spec.min_transfer is not None and budget is None:
        budget = math.ceil(block / spec.min_transfer)
    if spec.policy in BUDGETED and budget is not None:
        return budget, budget
    return 1, (budget if budget is not None and spec.policy in BOUNDED else block) + extra


def work(
    spec: DecodeSpec, prompt_tokens: float, *, shift: bool = False, causal: bool | None = None
) -> tuple[Work, Work]:
    """Return the least and the most work of one row with a prompt of ``prompt_tokens``.

    ``shift`` and ``causal`` (block-causal attention) are the network's; without ``causal`` the family decides.
    """
    causal = family_traits(spec.family).absolute_grid if causal is None else causal
    low, high = passes_per_block(spec)
    ascending = spec.schedule == "ascending"
    blocks = 1 if ascending else spec.blocks
    fewest = 1 if spec.early_stop != "none" else blocks
    one = spec.gen_length if ascending else spec.block_length
    if shift and blocks > 1 and low < 2 <= one:
        low = 2  # the first pass of a block commits its first position alone
    run = _Run(spec, prompt_tokens, one, causal)
    return _total(run, fewest, low), _total(run, blocks, high)


@dataclass(frozen=True, slots=True)
class _Run:
    spec: DecodeSpec
    prompt: float
    one: int
    causal: bool


def _total(run: _Run, blocks: int, passes: int) -> Work:
    spec, prompt, one = run.spec, run.prompt, run.one
    width = prompt + spec.gen_length
    found = Work(1, prompt, prompt * prompt, 0) if spec.cache == "block" and prompt >= one else Work(0, 0, 0, 0)
    for index in range(blocks):
        start = prompt + index * one
        found += _block(spec, passes, start, start + one if run.causal else width, one)
        if spec.cache == "block":
            found += Work(1, one, one * (start + one), 0)
    return found


def _block(spec: DecodeSpec, passes: int, start: float, seen: float, one: int) -> Work:
    """Return the work of one block whose passes see ``seen`` columns."""
    full = 1 if spec.cache in ("prefix", "dual") else passes if spec.cache == "none" else 0
    if spec.refresh is not None and spec.cache in ("prefix", "dual"):
        full = math.ceil(passes / spec.refresh)
    part = one if spec.cache in ("dual", "block") else seen - start
    columns = full * seen + (passes - full) * part
    return Work(passes, columns, columns * seen, passes * (one + 1) / 2)
