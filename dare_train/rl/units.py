"""Units: what an objective is applied to (tokens, noised rows or whole responses), as flat tables.

Shape suffixes: U units, X scored positions (row-major over all noised rows of a batch), R rows, S samples.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Where the scored positions of a batch are."""

    row_X: Tensor
    """Row in the batch."""
    sample_X: Tensor
    column_X: Tensor
    weight_X: Tensor
    gain_X: Tensor
    step_X: Tensor
    rows_S: Tensor
    """Noised rows of each sample."""
    length_S: Tensor
    """Counted response tokens of each sample."""
    answer_S: Tensor
    """All response tokens of each sample."""
    advantage_S: Tensor
    width: int
    siblings_S: Tensor
    """Key of the parent state that samples share; -1 for none."""
    block_length: int | None = None

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.length_S)

    def to(self, device: str) -> Scored:
        """Return the tables on ``device``."""
        return moved(self, device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """One entry per unit, and which scored positions make its value: ``sum coef_X logp_X`` over its positions."""

    unit_X: Tensor
    coef_X: Tensor
    sample_U: Tensor
    row_U: Tensor
    """Row of the unit; for units over several rows, the first."""
    column_U: Tensor
    """Column of a token unit, 0 otherwise."""
    step_U: Tensor
    mass_U: Tensor
    """Response tokens that the unit stands for."""
    gain_U: Tensor
    length_U: Tensor
    """Counted tokens of its sample."""
    advantage_U: Tensor

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.sample_U)

    def in_rows(self, row_X: Tensor) -> bool:
        """Whether every unit lies in one row, in the order of rows: then rows can be trained one after another."""
        ordered = bool((self.unit_X[1:] >= self.unit_X[:-1]).all()) and bool((self.row_U[1:] >= self.row_U[:-1]).all())
        return ordered and bool((self.row_U[self.unit_X] == row_X).all())

    def part(self, xs: slice, us: slice) -> Units:
        """Return some consecutive units, and the scored positions that belong to them."""
        per_unit = {f.name: getattr(self, f.name)[us] for f in fields(self) if f.name.endswith("_U")}
        return replace(self, unit_X=self.unit_X[xs] - us.start, coef_X=self.coef_X[xs], **per_unit)

    def to(self, device: str) -> Units:
        """Return the tables on ``device``."""
        return moved(self, device)


T = TypeVar("T", Scored, Units)


def moved(table: T, device: str) -> T:
    """Return ``table`` with its tensors on ``device``."""
    found: dict[str, Any] = {f.name: getattr(table, f.name) for f in fields(table)}
    changes: dict[str, Any] = {name: value.to(device) for name, value in found.items() if isinstance(value, Tensor)}
    return replace(table, **changes)


def token_units(scored: Scored, unit_X: Tensor, first_U: Tensor, coef_X: Tensor) -> Units:
    """Return units whose properties are those of their first scored position ``first_U``."""
    sample_U = scored.sample_X[first_U]
    return Units(
        unit_X=unit_X,
        coef_X=coef_X,
        sample_U=sample_U,
        row_U=scored.row_X[first_U],
        column_U=scored.column_X[first_U],
        step_U=scored.step_X[first_U],
        mass_U=torch.ones(len(first_U)),
        gain_U=scored.gain_X[first_U],
        length_U=scored.length_S[sample_U],
        advantage_U=scored.advantage_S[sample_U],
    )


def response_units(
    scored: Scored, unit_X: Tensor, coef_X: Tensor, sample_U: Tensor, row_U: Tensor, mass_U: Tensor
) -> Units:
    """Return units that stand for whole responses."""
    zero_U = torch.zeros(len(sample_U), dtype=torch.long)
    return Units(
        unit_X=unit_X,
        coef_X=coef_X,
        sample_U=sample_U,
        row_U=row_U,
        column_U=zero_U,
        step_U=zero_U,
        mass_U=mass_U,
        gain_U=torch.ones(len(sample_U)),
        length_U=scored.length_S[sample_U],
        advantage_U=scored.advantage_S[sample_U],
    )
