"""What a transfer policy promises the loop, checked where it costs nothing: on the host, or where it waits anyway.

Outside rules are strangers' code: one that commits nothing would hang a run, one that miscounts would leave masks in an
answer. Every message names the policy. Positions that are no masks are dropped from a selection without a word.

Legend: R rows of the pass, M candidate positions, K block length, T columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from dare_eval.decoding.canvas import Canvas
from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.schedule import Block
from dare_eval.decoding.step import Step
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from dare_eval.spec.checks import is_integer

REMEDY = "repair the rule (docs/extending.md), or choose another policy"


class Contract:
    """The checks of one run."""

    def __init__(self, policy: Policy, spec: DecodeSpec, canvas: Canvas, *, shift: bool) -> None:
        self.policy, self.spec, self.canvas, self.shift = policy, spec, canvas, shift
        self.may_wait = "zero_commit_steps" in spec.parity

    def select(self, step: Step) -> Tensor:
        """Return the positions to commit, bool [R, M]; none outside the masks, unless a parity switch overwrites."""
        commit_RM = self.policy.select(step)
        fits = (
            isinstance(commit_RM, Tensor)
            and commit_RM.dtype == torch.bool
            and commit_RM.shape == step.live_RM.shape
            and commit_RM.device == step.live_RM.device
        )
        if not fits:
            wanted = f"a bool tensor of shape {tuple(step.live_RM.shape)} on {step.live_RM.device}, like step.live_RM"
            raise self._broken("select() returned something else than positions", _described(commit_RM), wanted)
        return commit_RM if step.overwrite else commit_RM & step.live_RM

    def counts(self, step: Step) -> list[int] | None:
        """Return how many positions the policy says it commits per row, None where it does not know."""
        counts = self.policy.counts(step)
        if counts is None:
            return None
        least = 0 if self._waits(step.index, step.steps) else 1
        fits = (
            isinstance(counts, Sequence)
            and len(counts) == len(step.masks)
            and all(
                is_integer(count) and min(least, left) <= count <= left
                for count, left in zip(counts, step.masks, strict=True)
            )
        )
        if not fits:
            raise self._broken(
                f"counts() returned impossible numbers in pass {step.index} of a block",
                _described(counts),
                f"{len(step.masks)} integers from {least} to the rows' masks, {_described(step.masks)}; or None",
            )
        return [int(count) for count in counts]

    def visible(self, block: Block) -> list[int] | None:
        """Return the canvas columns the network may see, None for all."""
        columns = self.policy.visible(block, self.canvas.width)
        if columns is None:
            return None
        if self.canvas.causal or self.spec.cache != "none":
            raise self._broken(
                "visible() hides columns, which neither a cache nor a block-causal network allows",
                f"cache = {self.spec.cache}, block-causal = {self.canvas.causal}",
                "a bidirectional network with cache = none; else visible() returns None",
            )
        seen = list(columns) if isinstance(columns, Sequence) else []
        whole = bool(seen) and all(map(is_integer, seen))
        ascending = whole and all(left < right for left, right in pairwise(seen))
        needed = range(max(block.start - self.shift, 0), block.stop)
        if not (ascending and seen[0] >= 0 and seen[-1] < self.canvas.width and set(needed) <= set(seen)):
            raise self._broken(
                "visible() returned unusable columns",
                _described(columns),
                f"ascending columns within 0 .. {self.canvas.width - 1}, among them {needed.start} .. {block.stop - 1}",
            )
        return [int(column) for column in seen]

    def progress(self, before: Sequence[int], after: Sequence[int], index: int, steps: int | None) -> None:
        """Refuse a pass after which a row has all the masks it had: it could go on for ever."""
        stuck = [row for row, (had, left) in enumerate(zip(before, after, strict=True)) if had and left >= had]
        if stuck and not self._waits(index, steps):
            raise self._broken(
                f"select() commits nothing in pass {index} of a block, so decoding would never end",
                f"{len(stuck)} of {len(before)} rows keep their {before[stuck[0]]} masks",
                "at least one mask per row and pass, whatever the scores",
            )

    def settled(self, masks_R: Sequence[int], last_R: Sequence[int], passes_R: Sequence[int]) -> None:
        """Compare what counts() said of full blocks with the canvas: masks left, and the pass of the last commit."""
        for left, last, passes in zip(masks_R, last_R, passes_R, strict=True):
            if left or last != passes - 1:
                raise self._broken(
                    "counts() does not say what select() commits",
                    f"{left} masks left in a block it called full"
                    if left
                    else f"a block it called full after forward {passes - 1} was full after forward {last}",
                    "the exact number of positions that select() returns, or None",
                )

    def _waits(self, index: int, steps: int | None) -> bool:
        """Return whether a pass may commit nothing: a parity switch, while planned passes are to come."""
        return self.may_wait and steps is not None and index < steps - 1

    def _broken(self, what: str, seen: str, allowed: str) -> UsageError:
        return UsageError(f"policy '{self.spec.policy}': {what}", seen=seen, allowed=allowed, remedy=REMEDY)


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)} on {value.device}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
