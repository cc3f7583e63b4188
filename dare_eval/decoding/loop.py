"""The one denoising loop: blocks outside, passes inside, six exchangeable parts.

    for each block: while a row has masks in it: forward, propose, choose, commit, record

Evaluation, RL rollout and the terminal all decode through :func:`decode`. Nothing here knows a family: networks,
layouts, caches and rules come in as parts. Rows that have filled the current block sit out until the others have;
finished rows leave the batch. No text, no tokenizer.

Legend: B rows, R participating rows, T columns, K block length, M candidate positions, D width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dare_eval.decoding.caches import CACHES
from dare_eval.decoding.candidates import Candidates, all_positions, first_position, masked_positions, propose
from dare_eval.decoding.canvas import lay_out
from dare_eval.decoding.contract import Contract
from dare_eval.decoding.denoiser import Denoiser, Hidden
from dare_eval.decoding.editing import Editor
from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.recorder import PassRecord, Recorder
from dare_eval.decoding.results import DecodeResult, RecordOptions
from dare_eval.decoding.rows import Noise, Rows, row_seed
from dare_eval.decoding.sampler import ValueSampler
from dare_eval.decoding.schedule import Block, Budget, plan_blocks
from dare_eval.decoding.step import Step
from dare_eval.decoding.stopping import Stopper, end_tokens
from dare_eval.errors import UsageError
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.spec import POLICIES, DecodeSpec

Draw = Callable[[Rows, int], Tensor]


@torch.no_grad()
def decode(
    network: DiffusionNetwork,
    prompts: list[list[int]],
    spec: DecodeSpec,
    *,
    row_seeds: Sequence[int] | None = None,
    record: RecordOptions | None = None,
    committed: Sequence[Sequence[int]] | None = None,
) -> list[DecodeResult]:
    """Decode a batch of prompts and return one result per prompt, in order.

    A row's result depends on its prompt, the spec and its seed only, never on the batch. ``row_seeds`` gives each
    row its own source of randomness; without them a row's seed follows from ``spec.seed`` and its prompt, so repeats
    of a prompt that should differ need ``row_seeds``. ``committed`` begins each response in the middle: its tokens so
    far, the mask id where one is still to come; ``steps`` are then those that are left.

    Raises ``UsageError`` before the first step for a prompt that exceeds the context, tokens that no embedding has or
    a network that does not fit the spec; for a policy that breaks its contract and guidance that overflows as soon
    as it shows; ``DataError`` for logits that are not finite.
    """
    _check(network, prompts, spec, row_seeds)
    started = time.perf_counter()
    seeds = row_seeds if row_seeds is not None else [row_seed(spec.seed, prompt) for prompt in prompts]
    run = _Run(network, prompts, spec, Noise(seeds, network.device), record)
    if committed is not None:
        run.resume(committed)
    run.decode()
    return run.recorder.results(run.ends, time.perf_counter() - started)


def _check(
    network: DiffusionNetwork, prompts: list[list[int]], spec: DecodeSpec, row_seeds: Sequence[int] | None
) -> None:
    if row_seeds is not None and len(row_seeds) != len(prompts):
        raise UsageError("row_seeds and prompts differ in length", seen=len(row_seeds), allowed=f"{len(prompts)} seeds")
    if network.config.family != spec.family:
        raise UsageError(
            f"the spec is for family '{spec.family}', the network is of family '{network.config.family}'",
            seen=f"family = {spec.family}",
            allowed=network.config.family,
            remedy=f"DecodeSpec.build('{network.config.family}', ...)",
        )


@dataclass(slots=True)
class _Work:
    """Rows that still work on the current block."""

    rows: Rows
    masks: list[int]
    at_start: list[int]
    first_alone: bool
    """The first pass commits the block's first position alone."""
    full: dict[int, int] = field(default_factory=dict)
    """Rows whose block is full by the policy's own count, with the forwards they had taken."""

    def keep(self, wanted: list[bool]) -> None:
        """Drop the rows that ``wanted`` does not mark."""
        self.rows = self.rows.keep(wanted)
        self.masks = [value for value, flag in zip(self.masks, wanted, strict=True) if flag]
        self.at_start = [value for value, flag in zip(self.at_start, wanted, strict=True) if flag]


class _Run:
    """One call of :func:`decode`."""

    def __init__(
        self,
        network: DiffusionNetwork,
        prompts: list[list[int]],
        spec: DecodeSpec,
        noise: Noise,
        record: RecordOptions | None,
    ) -> None:
        self.spec, self.noise = spec, noise
        self.canvas = lay_out(prompts, spec, network.config, network.device)
        self.blocks = plan_blocks(spec, self.canvas)
        self.budget = Budget(spec, causal=self.canvas.causal)
        self.denoiser = Denoiser(network, self.canvas, spec)
        self.cache = CACHES[spec.cache](self.denoiser)
        self.policy: Policy = POLICIES.get(spec.policy)(spec)
        self.contract = Contract(self.policy, spec, self.canvas, shift=network.config.shift)
        self.sampler = ValueSampler(self.denoiser, self.policy.score)
        self.ends = end_tokens(spec, network.config)
        self.stopper = Stopper(spec, self.canvas, self.ends)
        self.recorder = Recorder(self.canvas, spec, network.config.eos_id, len(self.blocks), record)
        self.finished: set[int] = set()
        self.resumed = False
        self.overwrite = "overwrite_committed" in spec.parity
        self.idle_pass = "idle_cached_pass" in spec.parity and spec.cache in ("prefix", "dual")
        # A cache that every pass refreshes is no cache.
        in_blocks = (spec.cache != "none" and spec.refresh != 1) or len(self.blocks) > 1
        self.first_alone = network.config.shift and in_blocks and not self.canvas.causal

    def resume(self, committed: Sequence[Sequence[int]]) -> None:
        """Begin in the middle: blocks that are full already take no pass."""
        self.canvas.commit(committed, self.denoiser.network.config)
        self.resumed = True

    def decode(self) -> None:
        """Run all blocks."""
        rows = Rows.of(range(self.canvas.rows), self.canvas.ids_BT.device)
        if self.cache.prefill(rows):
            self.recorder.count(rows.keep([n >= self.spec.block_length for n in self.canvas.lengths]), 0)
        for block in self.blocks:
            rows = rows.keep([block.start < self.canvas.ends[row] and row not in self.finished for row in rows.ids])
            if not len(rows):
                return
            self.cache.begin(rows)
            for part, first_alone in self._parts(rows, block):
                self._fill(part, block, first_alone)
            rows = rows.keep([row not in self.finished for row in rows.ids])
            if len(rows) and self.cache.close(rows, block):
                self.recorder.count(rows, block.index)
            self._leave(rows, self.stopper.after_block(rows, block.stop))

    def _leave(self, rows: Rows, finished: list[bool]) -> None:
        self.finished |= {row for row, flag in zip(rows.ids, finished, strict=True) if flag}

    def _parts(self, rows: Rows, block: Block) -> list[tuple[Rows, bool]]:
        """Return rows to decode together, and whether their first pass commits the block's first position alone.

        A cached pass of a shifted network begins at the block and cannot predict its first position, so that goes
        ahead (Dream in blocks). A row that resumes with it committed uses its first pass, which is whole, as any other.
        """
        if not self.first_alone or block.steps == 1:
            return [(rows, False)]
        if not self.resumed:
            return [(rows, True)]
        open_R: list[bool] = self.canvas.open_BT[rows.index_R, block.start].tolist()
        parts = [(rows.keep([is_open == alone for is_open in open_R]), alone) for alone in (True, False)]
        return [(part, alone) for part, alone in parts if len(part)]

    def _fill(self, rows: Rows, block: Block, first_alone: bool) -> None:
        """Run passes over one block until no row has a mask in it (editing: until it is stable)."""
        masks = self._masks_left(rows, block)
        work = _Work(rows, masks, masks, first_alone)
        if self.resumed:
            work.keep([left > 0 for left in masks])
        columns = self.contract.visible(block)
        visible = None if columns is None else torch.tensor(columns, device=rows.index_R.device)
        editor = None if self.spec.edit_threshold is None else Editor(self.spec)
        index = 0
        while len(work.rows):
            found = self._candidates(work, block, index)
            hidden = self.cache.forward(work.rows, block, index, None if found is None else found.columns_RM, visible)
            self.recorder.count(work.rows, block.index)
            if found is None:
                break
            tokens_RM, score_RM = self._propose(work.rows, block, index, found, hidden)
            commit_RM, counts = self._choose(work, block, index, found, tokens_RM, score_RM)
            done = PassRecord(work.rows, found, tokens_RM, score_RM, commit_RM)
            edit_RM = None if editor is None else self._edit(editor, done)
            before = work.masks
            self._write(done, edit_RM)
            work.masks = self._masks_after(work, block, index, counts)
            busy = [left > 0 for left in work.masks]
            if editor is not None and edit_RM is not None:
                busy = editor.unstable(work.rows, before, work.masks, edit_RM.any(-1).tolist())
            self._drop(work, busy, index)
            index += 1
        self.sampler.check()
        self._settle(work, block)

    def _masks_left(self, rows: Rows, block: Block) -> list[int]:
        counts: list[int] = self.canvas.open_BT[rows.index_R][:, block.columns].sum(-1).tolist()
        return counts

    def _masks_after(self, work: _Work, block: Block, index: int, counts: list[int] | None) -> list[int]:
        """Return the rows' masks after the pass; they come from the device where the policy does not count."""
        if counts is None:
            left = self._masks_left(work.rows, block)
            self.sampler.check()
            self.contract.progress(work.masks, left, index, block.steps)
            return left
        if index == 0:
            self.sampler.check()
        left = [before - count for before, count in zip(work.masks, counts, strict=True)]
        for row, had, masks in zip(work.rows.ids, work.masks, left, strict=True):
            if had and not masks:
                work.full[row] = self.recorder.nfe[row]
        return left

    def _settle(self, work: _Work, block: Block) -> None:
        """Hold what the policy counted against the canvas, once per block."""
        if work.full:
            rows = Rows.of(list(work.full), self.canvas.ids_BT.device)
            last_R: list[int] = self.recorder.step_BT[rows.index_R][:, block.columns].amax(-1).tolist()
            self.contract.settled(self._masks_left(rows, block), last_R, list(work.full.values()))

    def _candidates(self, work: _Work, block: Block, index: int) -> Candidates | None:
        """Return the positions that the pass predicts; None in the idle pass of a parity switch."""
        if work.first_alone and index == 0:
            return first_position(work.rows, block)
        if self.overwrite or self.spec.edit_threshold is not None:
            return all_positions(self.canvas, work.rows, block, prompt_too=self.overwrite)
        return masked_positions(self.canvas, work.rows, block, work.masks) if any(work.masks) else None

    def _propose(
        self, rows: Rows, block: Block, index: int, found: Candidates, hidden: Hidden
    ) -> tuple[Tensor, Tensor]:
        """Return proposed tokens and scores of the candidates."""
        uniform_RM = self._uniform(self.noise.values, rows, block, found) if self.sampler.draws else None
        tokens_RM, score_RM = propose(self.sampler, found, hidden, uniform_RM)
        if self.spec.eos_gamma is not None:
            start, end = self.spec.eos_gamma
            gamma = start + (end - start) * self.budget.progress(block, index)
            score_RM = torch.where(tokens_RM == self.sampler.eos_id, score_RM * gamma, score_RM)
        return tokens_RM, score_RM

    def _uniform(self, draw: Draw, rows: Rows, block: Block, found: Candidates) -> Tensor:
        """Return draws for the candidates out of one draw per column of the block, so that none shifts another."""
        return draw(rows, block.length).gather(-1, found.columns_RM - block.start)

    def _choose(
        self, work: _Work, block: Block, index: int, found: Candidates, tokens_RM: Tensor, score_RM: Tensor
    ) -> tuple[Tensor, list[int] | None]:
        """Return the positions to commit, and how many per row where the host knows."""
        if work.first_alone and index == 0:
            return found.live_RM, [1] * len(work.rows)
        step = Step(
            score_RM=score_RM.masked_fill(~found.live_RM, -torch.inf),
            tokens_RM=tokens_RM,
            live_RM=found.live_RM,
            masks=work.masks,
            due=self.budget.due(block, index, work.masks, work.at_start),
            index=index,
            steps=block.steps,
            fraction=self.budget.reveal_fraction(block, index),
            uniform_RM=self._uniform(self.noise.positions, work.rows, block, found) if self.policy.noise else None,
            overwrite=self.overwrite,
        )
        return self.contract.select(step), self.contract.counts(step)

    def _edit(self, editor: Editor, done: PassRecord) -> Tensor:
        """Return the committed positions to replace."""
        current_RM = self.canvas.ids_BT[done.rows.column_R1, done.found.columns_RM]
        editable_RM = ~done.found.live_RM
        if done.found.considered_RM is not None:
            editable_RM = editable_RM & done.found.considered_RM
        edit_RM = editor.select(done.tokens_RM, current_RM, done.score_RM, editable_RM)
        self.recorder.edited(done, edit_RM, current_RM)
        return edit_RM

    def _write(self, done: PassRecord, edit_RM: Tensor | None) -> None:
        """Put the chosen tokens on the canvas."""
        self.recorder.committed(done)
        rows_R1, columns_RM = done.rows.column_R1, done.found.columns_RM
        put_RM = done.commit_RM if edit_RM is None else done.commit_RM | edit_RM
        ids_BT, open_BT = self.canvas.ids_BT, self.canvas.open_BT
        ids_BT[rows_R1, columns_RM] = torch.where(put_RM, done.tokens_RM, ids_BT[rows_R1, columns_RM])
        open_BT[rows_R1, columns_RM] = open_BT[rows_R1, columns_RM] & ~done.commit_RM

    def _drop(self, work: _Work, busy: list[bool], index: int) -> None:
        """Let the rows go that are done with the block or with their response."""
        if index == 0 and self.idle_pass:
            busy = [True] * len(busy)
        left = self.stopper.after_pass(work.rows)
        self._leave(work.rows, left)
        work.keep([flag and not gone for flag, gone in zip(busy, left, strict=True)])
