"""How small a difference a benchmark can show at all: the minimum detectable effect."""

from __future__ import annotations

import math


def minimum_detectable_effect(n: int, *, rate: float = 0.5, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest difference of two accuracies, measured on ``n`` items each, found with ``power``.

    Normal approximation, two-sided, unpaired: ``(z_{1-alpha/2} + z_power) * sqrt(2 rate (1-rate) / n)``; as a
    share. HumanEval (n = 164) gives 0.155.
    """
    return _z_sum(n, alpha, power) * math.sqrt(2 * rate * (1 - rate) / n)


def detectable_effect(n: int, spread: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest mean of ``n`` values with standard deviation ``spread`` told from 0 with ``power``."""
    return _z_sum(n, alpha, power) * spread / math.sqrt(n)


def _z_sum(n: int, alpha: float, power: float) -> float:
    from scipy.special import ndtri

    if n < 1:
        raise ValueError(f"a detectable effect needs at least one item, got n={n}")
    return float(ndtri(1 - alpha / 2) + ndtri(power))
