"""Is a difference between two runs on the same items more than chance? Paired tests, their intervals, Holm.

0/1 verdicts: McNemar's exact test with Tango's score interval. Graded credit or several answers per question:
paired bootstrap. Unpaired tests are left out on purpose: runs here share their items.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dare_eval.records.intervals import Floats, bootstrap_means

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Difference ``b - a`` as a share, its 95 % interval and two-sided p; ``wins`` counts items where b is better."""

    delta: float
    low: float
    high: float
    p: float
    n: int
    wins: int
    losses: int
    method: str


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided exact p of McNemar's test: discordant pairs against a fair coin; 1.0 without any."""
    from scipy.special import bdtr

    if wins < 0 or losses < 0:
        raise ValueError(f"counts of discordant pairs cannot be negative: {wins}, {losses}")
    n = wins + losses
    return 1.0 if n == 0 else min(1.0, 2.0 * float(bdtr(min(wins, losses), n, 0.5)))


def paired_binary(a: Sequence[bool], b: Sequence[bool], *, level: float = 0.95) -> PairedTest:
    """Compare 0/1 verdicts of two runs on the same items (McNemar exact, Tango's interval)."""
    if len(a) != len(b) or not a:
        raise ValueError(f"paired verdicts must be equally many and at least one, got {len(a)} and {len(b)}")
    wins = sum(1 for left, right in zip(a, b, strict=True) if right and not left)
    losses = sum(1 for left, right in zip(a, b, strict=True) if left and not right)
    n = len(a)
    low, high = tango_interval(wins, losses, n, level=level)
    return PairedTest((wins - losses) / n, low, high, mcnemar(wins, losses), n, wins, losses, "mcnemar-exact")


def tango_interval(wins: int, losses: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the score interval of a difference of paired proportions (Tango 1998, Statist. Med. 17:891-908)."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    delta = (wins - losses) / n

    def excess(guess: float, sign: float) -> float:
        return sign * _tango_score(wins, losses, n, guess) - z

    # The score falls from above z to below -z; at -1 and 1 it is infinite unless that bound is the estimate itself.
    edge = 1.0 - 1e-12
    low = -1.0 if excess(-edge, 1.0) <= 0 else float(brentq(excess, -edge, delta, args=(1.0,), xtol=1e-13))
    high = 1.0 if excess(edge, -1.0) <= 0 else float(brentq(excess, delta, edge, args=(-1.0,), xtol=1e-13))
    return low, high


def _tango_score(wins: int, losses: int, n: int, delta: float) -> float:
    """Return (wins - losses - n delta) over its standard error under the constrained maximum likelihood."""
    b = -wins - losses + (2 * n - wins + losses) * delta
    c = -losses * delta * (1 - delta)
    loss_rate = (math.sqrt(max(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * loss_rate + delta * (1 - delta))
    top = wins - losses - n * delta
    return top / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, top) if top else 0.0


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> PairedTest:
    """Compare graded credit of two runs on the same items by resampling items (or ``clusters`` of items).

    ``p`` inverts the percentile interval: twice the smaller tail of resampled differences beyond 0, each tail
    counted with one added resample, so p < 0.05 and a 95 % interval that excludes 0 tell the same story.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape or left.size == 0:
        raise ValueError(f"paired values must be equally many and at least one, got {left.size} and {right.size}")
    difference = right - left
    return resampled_test(
        difference, bootstrap_means(difference, clusters=clusters, resamples=resamples, seed=seed), level=level
    )


def resampled_test(difference: Floats, means: Floats, *, level: float = 0.95) -> PairedTest:
    """Return the test of item-wise differences whose bootstrap means are known (see :func:`paired_bootstrap`)."""
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    means = np.where(np.abs(means) < _ROUNDING, 0.0, means)  # sums such as 0.1 + 0.2 - 0.3 are ties, not wins
    tail = min(int((means <= 0).sum()), int((means >= 0).sum()))
    return PairedTest(
        delta=float(difference.mean()),
        low=float(low),
        high=float(high),
        p=min(1.0, 2.0 * (1 + tail) / (means.size + 1)),
        n=difference.size,
        wins=int((difference > _ROUNDING).sum()),
        losses=int((difference < -_ROUNDING).sum()),
        method="paired-bootstrap",
    )


def reverse(test: PairedTest) -> PairedTest:
    """Return the test of ``a`` minus ``b``."""
    return PairedTest(
        -test.delta, -test.high, -test.low, test.p, test.n, wins=test.losses, losses=test.wins, method=test.method
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted for being several (Holm 1979), in the order given."""
    m = len(p_values)
    adjusted = [0.0] * m
    largest = 0.0
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
