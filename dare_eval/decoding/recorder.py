"""The recorder part: forwards per row, the step map, edits, and on request the state and proposals of each pass.

Everything stays on the device until :meth:`Recorder.results`; the host keeps only counts.

Legend: B rows, R participating rows, T columns, M candidate positions (P: of one row), S recorded passes,
G response columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.decoding.candidates import Candidates
from dare_eval.decoding.canvas import Canvas
from dare_eval.decoding.results import DecodeResult, Edit, RecordOptions, Reveal, Trace, trim
from dare_eval.decoding.rows import Rows
from dare_eval.spec import DecodeSpec


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one pass proposed and committed."""

    rows: Rows
    found: Candidates
    tokens_RM: Tensor
    score_RM: Tensor
    commit_RM: Tensor

    def part(self, places: list[int]) -> PassRecord:
        """Return what the pass did to the rows at ``places``."""
        at_R = torch.tensor(places, device=self.tokens_RM.device)
        considered_RM = self.found.considered_RM
        found = Candidates(
            columns_RM=self.found.columns_RM[at_R],
            live_RM=self.found.live_RM[at_R],
            considered_RM=None if considered_RM is None else considered_RM[at_R],
        )
        rows = Rows.of([self.rows.ids[place] for place in places], self.rows.index_R.device)
        return PassRecord(rows, found, self.tokens_RM[at_R], self.score_RM[at_R], self.commit_RM[at_R])


@dataclass(frozen=True, slots=True)
class _Kept:
    rows: tuple[int, ...]
    steps: list[int]
    state_RT: Tensor
    proposal_RT: Tensor
    score_RT: Tensor
    committed_RT: Tensor


class Recorder:
    """Counts and maps of one decoding run."""

    def __init__(
        self, canvas: Canvas, spec: DecodeSpec, eos_id: int, blocks: int, options: RecordOptions | None
    ) -> None:
        self.canvas, self.spec, self.eos_id, self.options = canvas, spec, eos_id, options
        self.nfe = [0] * canvas.rows
        self.by_block = [[0] * blocks for _ in range(canvas.rows)]
        self.edits: list[list[Edit]] = [[] for _ in range(canvas.rows)]
        self.step_BT = torch.full(canvas.ids_BT.shape, -1, dtype=torch.int32, device=canvas.ids_BT.device)
        self._kept: list[_Kept] = []

    def count(self, rows: Rows, block: int) -> None:
        """Count one forward of ``rows``."""
        for row in rows.ids:
            self.nfe[row] += 1
            self.by_block[row][block] += 1

    def committed(self, done: PassRecord) -> None:
        """Note what the last counted forward revealed; call before the canvas changes."""
        steps = [self.nfe[row] - 1 for row in done.rows.ids]
        if self.options is not None:
            self._keep(done, steps, self.options)
            self._tell(done, steps, self.options)
        step_R1 = torch.tensor(steps, dtype=torch.int32, device=self.step_BT.device)[:, None]
        before_RM = self.step_BT[done.rows.column_R1, done.found.columns_RM]
        self.step_BT[done.rows.column_R1, done.found.columns_RM] = torch.where(
            done.commit_RM & done.found.live_RM, step_R1, before_RM
        )

    def edited(self, done: PassRecord, edit_RM: Tensor, old_RM: Tensor) -> None:
        """Note replaced tokens."""
        for number, place in edit_RM.nonzero().tolist():
            row = done.rows.ids[number]
            position = int(done.found.columns_RM[number, place]) - self.canvas.starts[row]
            edit = Edit(self.nfe[row] - 1, position, int(old_RM[number, place]), int(done.tokens_RM[number, place]))
            self.edits[row].append(edit)
            if self.options is not None and self.options.watch is not None:
                self.options.watch(Reveal(row, edit.step, [position], [edit.new], True))

    def _tell(self, done: PassRecord, steps: list[int], options: RecordOptions) -> None:
        """Hand what each row of the pass revealed to the watcher."""
        if options.watch is None:
            return
        shown_RM = done.commit_RM & done.found.live_RM
        for number, row in enumerate(done.rows.ids):
            places_P = done.found.columns_RM[number][shown_RM[number]] - self.canvas.starts[row]
            tokens_P = done.tokens_RM[number][shown_RM[number]]
            if len(places_P):
                options.watch(Reveal(row, steps[number], places_P.tolist(), tokens_P.tolist(), False))

    def _keep(self, done: PassRecord, steps: list[int], options: RecordOptions) -> None:
        if options.steps is not None and not set(steps) & set(options.steps):
            return
        if options.rows is not None and not set(options.rows) >= set(done.rows.ids):
            kept = [place for place, row in enumerate(done.rows.ids) if row in options.rows]
            if not kept:
                return
            done, steps = done.part(kept), [steps[place] for place in kept]
        state_RT = self.canvas.ids_BT[done.rows.index_R]
        number_R1 = torch.arange(len(done.rows), device=state_RT.device)[:, None]
        wanted_RM = done.found.live_RM if done.found.considered_RM is None else done.found.considered_RM
        proposal_RT = torch.full_like(state_RT, -1)
        proposal_RT[number_R1, done.found.columns_RM] = torch.where(wanted_RM, done.tokens_RM, -1)
        score_RT = torch.full(state_RT.shape, torch.nan, device=state_RT.device)
        score_RT[number_R1, done.found.columns_RM] = done.score_RM.float().masked_fill(~wanted_RM, torch.nan)
        committed_RT = torch.zeros_like(state_RT, dtype=torch.bool)
        committed_RT[number_R1, done.found.columns_RM] = done.commit_RM
        self._kept.append(_Kept(done.rows.ids, steps, state_RT, proposal_RT, score_RT, committed_RT))

    def results(self, ends: frozenset[int], wall_s: float) -> list[DecodeResult]:
        """Return one result per row, trimmed before the first of ``ends``; ``wall_s`` is that of the whole batch."""
        ids, steps = self.canvas.ids_BT.tolist(), self.step_BT.tolist()
        found = []
        for row in range(self.canvas.rows):
            region = slice(self.canvas.starts[row], self.canvas.ends[row])
            tokens, stop = trim(ids[row][region], self.eos_id, ends, self.spec.gen_length)
            result = DecodeResult(
                tokens=tokens,
                nfe=self.nfe[row],
                nfe_by_block=self._blocks_of(row, self.spec.block_length),
                generated_tokens=len(tokens),
                wall_s=wall_s / self.canvas.rows,
                step_map=steps[row][region],
                edits=self.edits[row],
                stop=stop,
                response=ids[row][region],
                trace=self._trace(row, ids[row], self.options) if self._wanted(row) else None,
            )
            found.append(result)
        return found

    def _wanted(self, row: int) -> bool:
        return self.options is not None and (self.options.rows is None or row in self.options.rows)

    def _blocks_of(self, row: int, block_length: int) -> list[int]:
        """Return the row's own blocks: other rows of the batch may have more."""
        if not self.canvas.causal:
            return self.by_block[row]
        return self.by_block[row][: (self.canvas.ends[row] - self.canvas.first_block) // block_length]

    def _trace(self, row: int, ids_T: list[int], options: RecordOptions | None) -> Trace:
        assert options is not None
        start, end = self.canvas.starts[row], self.canvas.ends[row]
        mine = [(kept, kept.rows.index(row)) for kept in self._kept if row in kept.rows]
        mine = [(kept, at) for kept, at in mine if options.steps is None or kept.steps[at] in options.steps]

        def stack(name: str, dtype: torch.dtype) -> Tensor:
            rows = [getattr(kept, name)[at, start:end] for kept, at in mine]
            return torch.stack(rows).cpu() if rows else torch.zeros(0, end - start, dtype=dtype)

        return Trace(
            prompt=ids_T[start - self.canvas.lengths[row] : start],
            steps=[kept.steps[at] for kept, at in mine],
            state_SG=stack("state_RT", torch.long),
            proposal_SG=stack("proposal_RT", torch.long),
            score_SG=stack("score_RT", torch.float32),
            committed_SG=stack("committed_RT", torch.bool),
        )
