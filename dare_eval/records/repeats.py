"""Numbers over repeated answers and over shards: pass@k, majority@k, mean of k, weighted means, whole averages.

A statistic that its inputs cannot support (fewer answers than k, a benchmark missing from an average) is None,
never an estimate from what happens to be there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Average:
    """An average over declared benchmarks; None as long as one is missing."""

    value: float | None
    missing: tuple[str, ...]


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the unbiased chance that one of ``k`` answers is right, from ``c`` right among ``n``.

    ``1 - C(n-c, k) / C(n, k)`` (Chen et al. 2021, arXiv 2107.03374, equation 1). None when ``n < k``.
    """
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"pass@k needs 0 <= c <= n and k >= 1, got n={n}, c={c}, k={k}")
    if n < k:
        return None
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def majority_at_k(answers: Sequence[str | None], correct: Sequence[bool], k: int) -> bool | None:
    """Return whether the most frequent of the first ``k`` answers is right; None when there are fewer than ``k``.

    Answers that could not be extracted do not vote; when none votes the result is False. Of equally frequent
    answers the one given first wins.
    """
    if len(answers) != len(correct):
        raise ValueError(f"{len(answers)} answers but {len(correct)} verdicts")
    if k < 1 or len(answers) < k:
        return None
    votes = Counter(answer for answer in answers[:k] if answer is not None)
    if not votes:
        return False
    winner = votes.most_common(1)[0][0]  # insertion order breaks ties
    return correct[list(answers).index(winner)]


def weighted_mean(shards: Iterable[tuple[float, int]]) -> float | None:
    """Return ``sum(right) / sum(n)`` over shards given as ``(right, n)``; None when there is no item at all."""
    pairs = list(shards)
    n = sum(count for _, count in pairs)
    return math.fsum(right for right, _ in pairs) / n if n else None


def whole_average(scores: Mapping[str, float | None], declared: Iterable[str]) -> Average:
    """Return the mean over ``declared`` benchmarks; with one missing the value is None and the missing are named."""
    names = list(declared)
    present = [value for name in names if (value := scores.get(name)) is not None]
    missing = tuple(name for name in names if scores.get(name) is None)
    return Average(None if missing or not names else math.fsum(present) / len(names), missing)
