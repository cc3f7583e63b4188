"""What a corruptor makes of one sample: noised rows, the positions scored in each, and their weights.

Rows are stored, or built when they are asked for (``LeftToRightStates``: one row per token would fill memory).
Positions are kept as flat lists in row-major order, the order in which the scorer returns values.

Shape suffixes: M rows of the sample, m some of them, T positions, X scored positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class States(Protocol):
    """Noised rows of one sample; a tensor is one."""

    def __len__(self) -> int:
        """Return the number of rows, M."""
        ...

    def __getitem__(self, rows: slice) -> Tensor:
        """Return some rows, long [m, T]."""
        ...


@dataclass(frozen=True, slots=True)
class Noise:
    """Noised rows of one sample."""

    states: States
    row_X: Tensor
    column_X: Tensor
    weight_X: Tensor
    """Factor of each log-probability in the estimate, such as 1/p; float32."""
    step_M: Tensor
    """Denoising step that a row stands for; 0 where rows are Monte-Carlo samples."""
    gain_X: Tensor | None = None
    """Factor on the loss of a position; None for 1."""

    @classmethod
    def of(
        cls, noisy_MT: Tensor, target_MT: Tensor, weight_MT: Tensor | None = None, step_M: Tensor | None = None
    ) -> Noise:
        """Return the noise with stored rows; positions are scored where ``target_MT`` is True."""
        row_X, column_X = target_MT.nonzero(as_tuple=True)
        weight_X = torch.ones(len(row_X)) if weight_MT is None else weight_MT[target_MT]
        step_M = torch.zeros(len(noisy_MT), dtype=torch.long) if step_M is None else step_M
        return cls(noisy_MT, row_X, column_X, weight_X, step_M)


@dataclass(frozen=True, slots=True)
class LeftToRightStates:
    """Row m shows the answer up to its place m and masks the rest; built on demand."""

    ids_T: Tensor
    answer_T: Tensor
    place_M: Tensor
    mask_id: int

    def __len__(self) -> int:
        """Return the number of rows, M."""
        return len(self.place_M)

    def __getitem__(self, rows: slice) -> Tensor:
        """Return some rows, long [m, T]."""
        column_T = torch.arange(len(self.ids_T))
        hidden_mT = (column_T >= self.place_M[rows, None]) & self.answer_T
        return self.ids_T.expand(hidden_mT.shape).masked_fill(hidden_mT, self.mask_id)
