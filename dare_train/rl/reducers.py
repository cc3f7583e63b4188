"""Reducers: from log-probabilities of scored positions to the values that an objective compares.

    TokenSum       one value per response token, summed over the rows in which it was scored
    RowToken       one value per token and row (replays: the row is a state that really occurred)
    RowSum         one value per noised row: an estimate of the response's log-likelihood each
    SequenceMean   one value per response: the mean of its rows' estimates
    SignedBound    one value per response: a lower bound where the advantage is positive, else an upper one

All but the last are linear in the log-probabilities.

Shape suffixes: X scored positions, U units, S samples, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.errors import UsageError
from dare_train.rl.checks import one_of, within
from dare_train.rl.units import Scored, Units, response_units, token_units


class Linear:
    """A reducer whose values are weighted sums of log-probabilities."""

    __slots__ = ()
    linear = True
    whole = False
    """Units stand for whole responses."""
    joins = False
    """Rows that score one token make one unit."""

    def values(self, logp_X: Tensor, scored: Scored, units: Units) -> Tensor:
        """Return the value of each unit, [U]."""
        zero_U = torch.zeros(len(units), dtype=logp_X.dtype, device=logp_X.device)
        return zero_U.index_add(0, units.unit_X, units.coef_X.to(logp_X.dtype) * logp_X)


@dataclass(frozen=True, slots=True)
class TokenSum(Linear):
    """``scale * sum_m weight_m logp_m`` of each token."""

    scale: float = 1.0

    joins = True

    def units(self, scored: Scored) -> Units:
        """Return one unit per scored token."""
        place_X = scored.sample_X * scored.width + scored.column_X
        place_U, unit_X = torch.unique(place_X, return_inverse=True)
        order_X = torch.arange(len(unit_X)).flip(0)
        first_U = torch.zeros(len(place_U), dtype=torch.long).index_copy(0, unit_X.flip(0), order_X)
        return token_units(scored, unit_X, first_U, self.scale * scored.weight_X)


@dataclass(frozen=True, slots=True)
class RowToken(Linear):
    """``logp`` of each token in each row that scores it."""

    def units(self, scored: Scored) -> Units:
        """Return one unit per scored position."""
        each_X = torch.arange(len(scored.row_X))
        return token_units(scored, each_X, each_X, scored.weight_X)


@dataclass(frozen=True, slots=True)
class RowSum(Linear):
    """``sum_i weight_i logp_i`` of each row."""

    whole = True

    def units(self, scored: Scored) -> Units:
        """Return one unit per row."""
        sample_R = torch.repeat_interleave(scored.rows_S)
        mass_R = scored.length_S[sample_R] / scored.rows_S[sample_R]
        row_R = torch.arange(len(sample_R))
        return response_units(scored, scored.row_X, scored.weight_X, sample_R, row_R, mass_R)


@dataclass(frozen=True, slots=True)
class SequenceMean(Linear):
    """``mean_m sum_i weight_mi logp_mi`` of each response."""

    whole = True

    def units(self, scored: Scored) -> Units:
        """Return one unit per sample."""
        sample_S = torch.arange(scored.samples)
        coef_X = scored.weight_X / scored.rows_S[scored.sample_X]
        first_S = scored.rows_S.cumsum(0) - scored.rows_S
        return response_units(scored, scored.sample_X, coef_X, sample_S, first_S, scored.length_S)


@dataclass(frozen=True, slots=True)
class SignedBound:
    """SPG's values, per token: the likelihood bound from below for good responses, from above for bad ones.

    ``negative`` says what bad ones get: ``eubo``, ``mix`` (``mix`` parts of it, the rest ELBO), ``elbo`` or ``zero``.
    ``beta`` >= 1 is the tightness of the upper bound (arXiv 2510.09541).
    """

    negative: str = "mix"
    beta: float = 1.5
    mix: float = 0.5
    allow_one_row: bool = False
    """With one noised row both bounds have the same gradient; refused unless this is set (to show just that)."""

    linear = False
    whole = True
    joins = False

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("reducer.negative", self.negative, ("eubo", "mix", "elbo", "zero"))
        within("reducer.mix", self.mix, 0.0, 1.0)
        within("reducer.beta", self.beta, 1.0)

    def units(self, scored: Scored) -> Units:
        """Return one unit per sample."""
        if self.negative in ("eubo", "mix") and not self.allow_one_row and bool((scored.rows_S < 2).any()):
            raise UsageError(
                "with one noised row the upper bound is the lower one plus a constant: no gradient tells them apart",
                seen="corruptor.rows = 1",
                allowed="2 or more, or reducer.negative = elbo",
            )
        return SequenceMean().units(scored)

    def values(self, logp_X: Tensor, scored: Scored, units: Units) -> Tensor:
        """Return the value of each sample, [S]."""
        count_R = torch.bincount(scored.row_X, minlength=int(scored.rows_S.sum()))
        lower_S = self.lower(logp_X, scored, count_R)
        if self.negative == "zero":
            below_S = torch.zeros_like(lower_S)
        elif self.negative == "elbo":
            below_S = lower_S
        else:
            share = 1.0 if self.negative == "eubo" else self.mix
            below_S = share * self.upper(logp_X, scored, count_R) + (1 - share) * lower_S
        return torch.where(scored.advantage_S > 0, lower_S, below_S)

    def lower(self, logp_X: Tensor, scored: Scored, count_R: Tensor) -> Tensor:
        """Return the mean over rows of the mean log-probability of their masked tokens, [S]."""
        weight_X = 1.0 / (count_R[scored.row_X] * scored.rows_S[scored.sample_X])
        zero_S = torch.zeros(scored.samples, dtype=logp_X.dtype, device=logp_X.device)
        return zero_S.index_add(0, scored.sample_X, weight_X.to(logp_X.dtype) * logp_X)

    def upper(self, logp_X: Tensor, scored: Scored, count_R: Tensor) -> Tensor:
        """Return the mean over masked tokens of ``(1/beta) log mean_m 1[masked] p^beta / share_m``, [S]."""
        share_X = count_R[scored.row_X] / scored.length_S[scored.sample_X]
        rows_X = scored.rows_S[scored.sample_X]
        place_U, token_X = torch.unique(scored.sample_X * scored.width + scored.column_X, return_inverse=True)
        sample_U = place_U // scored.width
        power_X = self.beta * logp_X - (share_X * rows_X).to(logp_X.dtype).log()
        empty_U = torch.zeros(len(place_U), dtype=logp_X.dtype, device=logp_X.device)
        # Powers of unlikely tokens vanish in float32; the largest of a token is taken out before they are summed.
        most_U = empty_U.scatter_reduce(0, token_X, power_X.detach(), "amax", include_self=False)
        total_U = empty_U.index_add(0, token_X, torch.exp(power_X - most_U[token_X]))
        value_U = (most_U + total_U.log()) / self.beta
        tokens_S = torch.bincount(sample_U, minlength=scored.samples)
        zero_S = torch.zeros(scored.samples, dtype=logp_X.dtype, device=logp_X.device)
        return zero_S.index_add(0, sample_U, value_U / tokens_S[sample_U].to(logp_X.dtype))
