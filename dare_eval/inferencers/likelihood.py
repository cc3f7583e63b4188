"""Settings of a likelihood task, and how the scores of an item's options become its answer.

A model config gives them as ``likelihood=dict(mc_num=128, estimator="auto", rank_by="sum")``; every key of
``LikelihoodOptions`` is allowed. ``rank_by`` says what is compared between options of unlike length.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.decoding.likelihood.options import ElboResult, LikelihoodOptions
from dare_eval.errors import IncompleteError, UsageError, unknown

RANKINGS = ("token", "sum", "byte")
"""Log-likelihood per token, of the whole continuation, or per UTF-8 byte of it."""


@dataclass(frozen=True, slots=True)
class LikelihoodTask:
    """How options are scored and compared; ``rank_by`` None leaves the comparison to the inferencer."""

    options: LikelihoodOptions
    rank_by: str | None = None

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> LikelihoodTask:
        """Return the checked settings; raises ``UsageError`` for an unknown key or a value out of range."""
        if not isinstance(settings, Mapping):
            raise UsageError("likelihood is no dict of settings", seen=settings, allowed="dict(mc_num=128, ...)")
        given = dict(settings)
        rank_by = given.pop("rank_by", None)
        known = [field.name for field in dataclasses.fields(LikelihoodOptions)]
        for key in given:
            if key not in known:
                raise unknown("likelihood setting", key, [*known, "rank_by"])
        if rank_by is not None and rank_by not in RANKINGS:
            raise unknown("ranking of options", str(rank_by), RANKINGS)
        return cls(LikelihoodOptions(**given), rank_by)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as JSON-ready values; :meth:`build` takes them back."""
        return {**dataclasses.asdict(self.options), "rank_by": self.rank_by}

    def describe(self, config: Any, dtype: str) -> dict[str, Any]:
        """Return what stands in the place of a decode spec: all settings, filled in for a ``NetworkConfig``.

        Raises ``UsageError`` for an estimator that does not fit the network.
        """
        from dare_eval.decoding.likelihood.elbo import resolve_estimator

        estimator = resolve_estimator(self.options.estimator, config)
        known = {"task": "likelihood", "family": config.family, "dtype": dtype, "engine": "native"}
        given = {key: value for key, value in self.to_dict().items() if key != "batch_size"}  # changes no result
        return {**known, **given, "estimator": estimator, "strata": self.options.resolved_strata(estimator)}


@dataclass(frozen=True, slots=True)
class ScoredOption:
    """One option of an item."""

    label: Any
    result: ElboResult
    n_bytes: int
    """UTF-8 bytes of the continuation's text."""

    def score(self, rank_by: str) -> float:
        """Return what is compared; higher is better."""
        return self.result.loglik / self._unit(rank_by)

    def score_stderr(self, rank_by: str) -> float:
        """Return the Monte-Carlo standard error of :meth:`score`; NaN with a single batch of copies."""
        return self.result.stderr / self._unit(rank_by)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the option as JSON can hold them (an unknown standard error is None)."""
        result = self.result
        stderr = None if math.isnan(result.stderr) else result.stderr
        found = {"loglik": result.loglik, "stderr": stderr, "n_tokens": result.n_tokens, "n_bytes": self.n_bytes}
        found |= {"per_token": self.score("token"), "per_byte": self.score("byte"), "nfe": result.nfe}
        return found if result.greedy is None else {**found, "greedy": result.greedy}

    def _unit(self, rank_by: str) -> int:
        return max(1, {"token": self.result.n_tokens, "sum": 1, "byte": self.n_bytes}[rank_by])


def check_finite(result: ElboResult, name: str) -> None:
    """Raise ``IncompleteError`` for a log-likelihood that is no finite number, which nothing can be compared with.

    The logits of a network are finite, and so are their log-probabilities: infinities come from an overflow, mostly of
    guidance, and stand for no probability.
    """
    if not math.isfinite(result.loglik):
        raise IncompleteError(
            f"the log-likelihood of {name} is no finite number",
            seen=result.loglik,
            allowed="a finite number",
            remedy="a smaller cfg_scale, or decoding=dict(dtype='float32')",
        )


def choose(options: Sequence[ScoredOption], rank_by: str) -> tuple[ScoredOption, dict[str, Any]]:
    """Return the best option (of equal ones the first) and how far it is ahead.

    ``margin`` is the lead over the second best in units of the ranking; ``margin_stderr`` adds both Monte-Carlo
    errors as if they were independent, which is too much where options share their random numbers. Raises
    ``IncompleteError`` when the score of an option is no finite number.
    """
    for one in options:
        check_finite(one.result, f"option '{one.label}'")
    best = max(options, key=lambda one: one.score(rank_by))
    others = [one for one in options if one is not best]
    if not others:
        return best, {}
    second = max(others, key=lambda one: one.score(rank_by))
    stderr = math.hypot(best.score_stderr(rank_by), second.score_stderr(rank_by))
    lead = {"margin": best.score(rank_by) - second.score(rank_by)}
    return best, {**lead, "margin_stderr": None if math.isnan(stderr) else stderr}
