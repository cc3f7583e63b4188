"""AUP, accuracy under parallelism (arXiv 2601.07568): one number for quality and tokens per forward together.

Points ``(rho, y)`` are one model's decode settings on one benchmark: tokens per forward and accuracy in percent.
With ``W(y) = min(exp(-alpha (1 - y / y_max)), 1)``

    AUP = rho_1 y_1 + sum_{i >= 2} 1/2 (rho_i - rho_{i-1}) (y_i W(y_i) + y_{i-1} W(y_{i-1}))

over the points, sorted by rho (equal rho: as given), that lose at most ``tolerated_loss`` points against the first.
The reference code gives no value when the last point lost more; here the kept points give one and ``beyond`` says
so. Its published values have no interval; :func:`aup_interval` resamples items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ALPHA = 3.0
TOLERATED_LOSS = 5.0
_CHUNK = 500  # resamples at once


@dataclass(frozen=True, slots=True)
class Aup:
    """The area, and how much of the curve it covers."""

    value: float
    kept: int
    """Number of points within the tolerated loss."""
    beyond: bool
    """True when the fastest setting lost more than is tolerated."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One decode setting on the items of a benchmark; the same items, in the same order, for every setting."""

    correct: Sequence[bool]
    generated_tokens: Sequence[float]
    nfe: Sequence[float]


def aup(
    points: Sequence[tuple[float, float]],
    y_max: float,
    *,
    alpha: float = ALPHA,
    tolerated_loss: float = TOLERATED_LOSS,
) -> Aup:
    """Return AUP of ``points``; ``y_max`` is the best accuracy (percent) of all methods compared.

    Raises ``ValueError`` without a point or for a ``y_max`` that is not positive.
    """
    if not points or y_max <= 0:
        raise ValueError(f"AUP needs at least one point and a positive best accuracy, got {len(points)} and {y_max}")
    ordered = sorted(points, key=lambda point: point[0])
    floor = ordered[0][1] - tolerated_loss
    kept = [(rho, y) for rho, y in ordered if y >= floor]
    weighted = [y * min(math.exp(-alpha * (1 - y / y_max)), 1.0) for _, y in kept]
    area = kept[0][0] * kept[0][1]
    for i in range(1, len(kept)):
        area += 0.5 * (kept[i][0] - kept[i - 1][0]) * (weighted[i] + weighted[i - 1])
    return Aup(area, len(kept), ordered[-1][1] < floor)


def points_of(settings: Sequence[Setting]) -> list[tuple[float, float]]:
    """Return ``(tokens per forward, accuracy in percent)`` of each setting."""
    return [(sum(s.generated_tokens) / sum(s.nfe), 100 * sum(s.correct) / len(s.correct)) for s in settings]


def aup_interval(
    settings: Sequence[Setting], y_max: float, *, resamples: int = 2000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of AUP over items.

    One draw of items serves all settings, since they answered the same ones; ``y_max`` stays as given.
    """
    values_SN = np.array([s.correct for s in settings], dtype=np.float64)
    tokens_SN = np.array([s.generated_tokens for s in settings], dtype=np.float64)
    nfe_SN = np.array([s.nfe for s in settings], dtype=np.float64)
    draw = np.random.default_rng(seed)
    found: list[float] = []
    for start in range(0, resamples, _CHUNK):
        counts_RN = _draw_counts(draw, min(_CHUNK, resamples - start), values_SN.shape[1])
        y_RS = 100 * (counts_RN @ values_SN.T) / values_SN.shape[1]
        rho_RS = (counts_RN @ tokens_SN.T) / (counts_RN @ nfe_SN.T)
        found += [aup(list(zip(rho, y, strict=True)), y_max).value for rho, y in zip(rho_RS, y_RS, strict=True)]
    low, high = np.percentile(found, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def _draw_counts(draw: np.random.Generator, rows: int, n: int) -> Floats:
    """Return how often each of ``n`` items is drawn in each of ``rows`` resamples of size ``n``."""
    picked = draw.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(picked.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
