"""One optimizer step's worth of noised rows with the weights of their losses; made once, scored as often as needed.

Policy, old policy and reference are scored on the same stored rows, so they see the same masks by construction.

Shape suffixes: S samples, R rows, r rows of a chunk, T positions, X scored positions, U units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dare_train.rl.noise import Noise
from dare_train.rl.samples import Sample
from dare_train.rl.units import Scored, Units


class Rows(NamedTuple):
    """What the scorer is given for some rows, padded on the right."""

    noisy_rT: Tensor
    target_rT: Tensor
    chosen_rT: Tensor
    valid_rT: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBatch:
    """Rows, units and weights of one optimizer step of this process."""

    samples: tuple[Sample, ...]
    noises: tuple[Noise, ...]
    scored: Scored
    units: Units
    policy_U: Tensor
    """Weight of the policy loss, divided by the denominators of the global batch."""
    kl_U: Tensor
    """Weight of the KL estimate, without its coefficient."""
    distil_U: Tensor | None
    """Weight of the value in self-distillation, which is ``constant - sum distil_U value_U``."""
    constant: float
    units_whole: float
    """Units of all processes."""
    chunks: tuple[slice, ...]
    """Rows of each forward; at least one."""
    idle: int = 0
    """Further forwards that other processes make."""
    alone: bool = False
    """Units lie inside rows: each chunk is trained by itself, without a first pass."""
    mask_id: int = 0
    device: str = "cpu"
    old_U: Tensor | None = None
    ref_U: Tensor | None = None

    def with_values(self, *, old: Tensor | None = None, ref: Tensor | None = None) -> UpdateBatch:
        """Return the batch with values of the old policy and of the reference, [U] each."""
        return replace(self, old_U=old, ref_U=ref)

    @property
    def tokens(self) -> float:
        """Tokens in all rows, padding excluded."""
        return float(sum(len(noise.states) * len(s.ids_T) for s, noise in zip(self.samples, self.noises, strict=True)))

    def rows(self, chosen: slice) -> Rows:
        """Return the tensors of some rows on the batch's device."""
        width, first = self.scored.width, 0
        noisy, ids, rows_of, lengths = [], [], [], []
        for sample, noise in zip(self.samples, self.noises, strict=True):
            last = first + len(noise.states)
            start, stop = max(chosen.start, first), min(chosen.stop, last)
            if start < stop:
                noisy.append(_wide(noise.states[start - first : stop - first], width, self.mask_id))
                ids.append(_wide(sample.ids_T, width, self.mask_id))
                rows_of.append(stop - start)
                lengths.append(len(sample.ids_T))
            first = last
        repeats = torch.tensor(rows_of)
        length_r = torch.tensor(lengths).repeat_interleave(repeats)
        chosen_rT = torch.zeros(chosen.stop - chosen.start, width, dtype=torch.bool)
        xs = self.places(chosen)
        row_x, column_x = self.scored.row_X[xs].cpu() - chosen.start, self.scored.column_X[xs].cpu()
        chosen_rT[row_x, column_x] = True
        target_rT = torch.stack(ids).repeat_interleave(repeats, 0)
        found = (torch.cat(noisy), target_rT, chosen_rT, torch.arange(width) < length_r[:, None])
        return Rows(*(tensor.to(self.device) for tensor in found))

    def places(self, rows: slice) -> slice:
        """Return the scored positions of consecutive rows."""
        return _between(self.scored.row_X, rows)

    def members(self, rows: slice) -> slice:
        """Return the units of consecutive rows (only when units lie inside rows)."""
        return _between(self.units.row_U, rows)

    def digest(self) -> str:
        """Return a hash of all noised rows and scored positions: equal for whatever is scored on this batch."""
        seen = hashlib.sha256()
        for noise in self.noises:
            for tensor in (noise.states[0 : len(noise.states)], noise.row_X, noise.column_X, noise.weight_X):
                seen.update(tensor.contiguous().numpy().tobytes())
        return seen.hexdigest()

    def dump(self) -> dict[str, Any]:
        """Return the tensors for a failure report."""
        names = ("policy_U", "kl_U", "old_U", "ref_U")
        ids = [sample.ids_T for sample in self.samples]
        rewards = [sample.trajectory.reward for sample in self.samples]
        return {"ids": ids, "rewards": rewards, "advantage_U": self.units.advantage_U} | {
            name: getattr(self, name) for name in names
        }


def tabulate(samples: Sequence[Sample], noises: Sequence[Noise], block_length: int | None) -> Scored:
    """Return where the scored positions of all samples are, numbered over the batch."""
    rows_S = torch.tensor([len(noise.states) for noise in noises], dtype=torch.long)
    first_S = rows_S.cumsum(0) - rows_S
    places_S = torch.tensor([len(noise.row_X) for noise in noises], dtype=torch.long)
    width = max((len(sample.ids_T) for sample in samples), default=0)
    gains = [torch.ones(len(noise.row_X)) if noise.gain_X is None else noise.gain_X for noise in noises]
    advantages = [sample.advantage for sample in samples]
    row_X = _join([noise.row_X for noise in noises]) + first_S.repeat_interleave(places_S)
    return Scored(
        row_X=row_X,
        sample_X=torch.arange(len(noises)).repeat_interleave(places_S),
        column_X=_join([noise.column_X for noise in noises]),
        weight_X=_join([noise.weight_X for noise in noises], torch.float32),
        gain_X=_join(gains, torch.float32),
        step_X=_join([noise.step_M for noise in noises])[row_X],
        rows_S=rows_S,
        length_S=torch.tensor([float(sample.loss_T.sum()) for sample in samples]),
        answer_S=torch.tensor([float(sample.answer_T.sum()) for sample in samples]),
        advantage_S=torch.tensor(advantages, dtype=torch.float32),
        siblings_S=torch.tensor([sample.siblings for sample in samples], dtype=torch.long),
        width=width,
        block_length=block_length,
    )


def _wide(ids_T: Tensor, width: int, mask_id: int) -> Tensor:
    """Return ids padded on the right to ``width``."""
    missing = width - ids_T.shape[-1]
    return torch.nn.functional.pad(ids_T, (0, missing), value=mask_id) if missing else ids_T


def _join(parts: Sequence[Tensor], dtype: torch.dtype = torch.long) -> Tensor:
    return torch.cat(list(parts)).to(dtype) if parts else torch.zeros(0, dtype=dtype)


def _between(sorted_N: Tensor, rows: slice) -> slice:
    ends = torch.tensor([rows.start, rows.stop], device=sorted_N.device)
    start, stop = torch.searchsorted(sorted_N, ends).tolist()
    return slice(start, stop)
