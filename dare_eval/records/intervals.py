"""Confidence intervals for a mean over items: Wilson, clustered by question, percentile bootstrap.

Values are shares in [0, 1]; callers that print percent multiply. Every generator is explicit and seeded, so the
same records give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_CHUNK_ITEMS = 1 << 19  # items drawn at once: 4 MiB, stays in cache


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval; ``method`` names how the bounds were found."""

    value: float
    low: float
    high: float
    n: int
    method: str


def wilson(right: int, n: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of ``right`` out of ``n`` (Wilson 1927)."""
    from scipy.special import ndtri

    if n < 1 or not 0 <= right <= n:
        raise ValueError(f"Wilson's interval needs 0 <= right <= n and n >= 1, got {right} of {n}")
    z = float(ndtri(0.5 + level / 2))
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # rounding may leave 1e-17 beside the exact bound 0 or 1
    low = 0.0 if right == 0 else middle - half
    high = 1.0 if right == n else middle + half
    return Interval(share, low, high, n, "wilson")


def clustered(values: ArrayLike, clusters: Sequence[Hashable], *, level: float = 0.95) -> Interval:
    """Return the mean with a Student-t interval from errors clustered by ``clusters`` (repeats of one question).

    Variance ``G/(G-1) * sum_g (sum_{i in g} (x_i - mean))^2 / n^2`` with ``G - 1`` degrees of freedom (Miller 2024,
    arXiv 2411.00640, equation 4, with the small-sample factor). Raises ``ValueError`` below two clusters.
    """
    from scipy.special import stdtrit

    x = np.asarray(values, dtype=np.float64)
    sums, _ = _by_cluster(x - x.mean() if x.size else x, clusters)
    groups = len(sums)
    if groups < 2:
        raise ValueError(f"a clustered interval needs at least two clusters, got {groups}")
    variance = groups / (groups - 1) * float(np.square(sums).sum()) / x.size**2
    half = float(stdtrit(groups - 1, 0.5 + level / 2)) * math.sqrt(variance)
    mean = float(x.mean())
    return Interval(mean, mean - half, mean + half, x.size, "clustered")


def bootstrap(
    values: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the mean with its percentile bootstrap interval; whole clusters are drawn when ``clusters`` is given."""
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        raise ValueError("a bootstrap interval needs at least one value")
    means = bootstrap_means(x, clusters=clusters, resamples=resamples, seed=seed)
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    return Interval(float(x.mean()), float(low), float(high), x.size, "bootstrap")


def bootstrap_means(
    x: Floats, *, clusters: Sequence[Hashable] | None = None, resamples: int = 10_000, seed: int = 0
) -> Floats:
    """Return the means of ``resamples`` samples drawn with replacement from ``x`` (or from its clusters)."""
    sums, counts = (x, None) if clusters is None else _by_cluster(x, clusters)
    parts = []
    for picked in _draws(len(sums), resamples, seed):
        total = sums[picked].sum(axis=1)
        parts.append(total / len(sums) if counts is None else total / counts[picked].sum(axis=1))
    return np.concatenate(parts)


def bootstrap_columns(
    values_NK: Floats, *, clusters: Sequence[Hashable] | None = None, resamples: int = 10_000, seed: int = 0
) -> Floats:
    """Return :func:`bootstrap_means` of each column of ``values_NK`` as [resamples, K]; all columns share the draws."""
    columns = [(column, None) if clusters is None else _by_cluster(column, clusters) for column in values_NK.T]
    sums_KG = np.stack([sums for sums, _ in columns])
    sizes_G = columns[0][1]
    groups = sums_KG.shape[1]
    parts = []
    for picked in _draws(groups, resamples, seed):
        places = picked + groups * np.arange(len(picked))[:, None]
        counts_RG = np.bincount(places.ravel(), minlength=len(picked) * groups).reshape(len(picked), groups)
        total_RK = counts_RG.astype(np.float64) @ sums_KG.T
        parts.append(total_RK / (groups if sizes_G is None else (counts_RG @ sizes_G)[:, None]))
    return np.concatenate(parts)


def _draws(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the items drawn in each resample, some resamples at a time."""
    draw = np.random.default_rng(seed)
    rows = max(1, _CHUNK_ITEMS // n)
    for start in range(0, resamples, rows):
        yield draw.integers(0, n, size=(min(rows, resamples - start), n))


def _by_cluster(x: Floats, clusters: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Return sum and size of each cluster, in order of first appearance."""
    if len(clusters) != x.size:
        raise ValueError(f"{x.size} values but {len(clusters)} cluster labels")
    position: dict[Hashable, int] = {}
    index = np.array([position.setdefault(label, len(position)) for label in clusters], dtype=np.intp)
    groups = len(position)
    sums: Floats = np.bincount(index, weights=x, minlength=groups).astype(np.float64)
    sizes: Floats = np.bincount(index, minlength=groups).astype(np.float64)
    return sums, sizes
