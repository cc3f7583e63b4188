"""Settings and result of a likelihood estimate; standard library only."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from dare_eval.errors import UsageError, unknown
from dare_eval.spec.checks import is_count, is_number, is_whole

ESTIMATORS = ("auto", "counts", "bernoulli", "blocks", "pseudo", "ar")
ROUNDINGS = ("floor", "legacy")
_STRATA = {"counts": 8, "bernoulli": 32, "blocks": 8, "pseudo": 1, "ar": 1}
_MAY_BE_NONE = ("strata", "block_length", "append_eos")


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodOptions:
    """How a likelihood is estimated; checked when built."""

    estimator: str = "auto"
    """``counts`` (LLaDA), ``bernoulli`` (Dream), ``blocks`` (block-causal), ``pseudo``, ``ar``; auto: the family's."""
    mc_num: int = 128
    """Noisy copies per continuation; a multiple of ``strata``."""
    strata: int | None = None
    """Copies whose noise levels are spread evenly; None: 8 (counts, blocks) or 32 (bernoulli), at most mc_num."""
    rounding: str = "floor"
    """Rounding of the number of masks: floor is unbiased, legacy is LLaDA's."""
    cfg_scale: float = 0.0
    """Guidance weight; the second copy has every context token masked."""
    block_length: int | None = None
    """Block length of block-causal networks; None takes the network's."""
    append_eos: bool | None = None
    """Whether an EOS that is never masked closes the continuation; None: with ``bernoulli`` only, as published."""
    batch_size: int = 16
    """Rows per forward."""
    seed: int = 0
    """Base seed; the draws of an item follow from it and the item's group."""
    check_greedy: bool = False
    """Whether to test if greedy decoding yields the continuation; costs one forward per token."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the value."""
        if self.estimator not in ESTIMATORS:
            raise unknown("likelihood estimator", self.estimator, ESTIMATORS)
        if self.rounding not in ROUNDINGS:
            raise unknown("rounding", self.rounding, ROUNDINGS)
        for key in ("mc_num", "strata", "batch_size", "block_length"):
            self._require(key, is_count(getattr(self, key)), "an integer above 0")
        self._require("seed", is_whole(self.seed), "an integer of at least 0")
        guided = is_number(self.cfg_scale) and 0 <= self.cfg_scale < math.inf
        self._require("cfg_scale", guided, "a finite number of at least 0")
        for key in ("append_eos", "check_greedy"):
            self._require(key, isinstance(getattr(self, key), bool), "True or False")
        if self.strata is not None and self.mc_num % self.strata:
            raise UsageError(
                "mc_num is not a multiple of strata",
                seen=f"mc_num = {self.mc_num}, strata = {self.strata}",
                allowed=f"a multiple of {self.strata}",
                remedy=f"mc_num = {math.ceil(self.mc_num / self.strata) * self.strata}",
            )

    def _require(self, key: str, holds: bool, allowed: str) -> None:
        """Refuse a value out of range; None stands for "the network's own" where it is the default."""
        value = getattr(self, key)
        if not holds and not (value is None and key in _MAY_BE_NONE):
            raise UsageError(f"likelihood option '{key}' is out of range: {value!r}", seen=repr(value), allowed=allowed)

    def resolved_strata(self, estimator: str) -> int:
        """Return the stratum count: the given one, or the largest divisor of mc_num up to the published one."""
        if self.strata is not None:
            return self.strata
        most = min(_STRATA[estimator], self.mc_num)
        return next(count for count in range(most, 0, -1) if self.mc_num % count == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElboResult:
    """Estimate for one (context, continuation)."""

    loglik: float
    """Estimated log-likelihood of the continuation in nats (a lower bound in expectation for the ELBO estimators)."""
    n_tokens: int
    """Tokens of the continuation."""
    stderr: float
    """Monte-Carlo standard error of ``loglik``; 0 where nothing is random, NaN for a single draw."""
    nfe: int
    """Noisy copies evaluated (equal ones once), the greedy check included."""
    greedy: bool | None = None
    """Whether greedy decoding yields the continuation; None when not checked."""


def warn_generation_only(settings: Iterable[str]) -> list[str]:
    """Warn about each setting that a likelihood task ignores and return the messages.

    ``settings`` are the keys a user gave; those of ``LikelihoodOptions`` are fine.
    """
    used = {field.name for field in dataclasses.fields(LikelihoodOptions)}
    messages = [f"{key} has no effect on a likelihood task" for key in settings if key not in used]
    for message in messages:
        warnings.warn(message, stacklevel=2)
    return messages
