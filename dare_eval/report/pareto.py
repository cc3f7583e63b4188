"""Which settings are worth their cost: those that no other one beats in quality without costing more."""

from __future__ import annotations

from collections.abc import Sequence


def pareto(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Tell for each ``(cost, quality)`` whether it is undominated.

    That is: no other point is at least as good in both and better in one. Equal points are undominated together.
    Intervals are not looked at: a mark says where the point estimates stand.
    """
    return [
        not any(
            cost <= own_cost and quality >= own_quality and (cost, quality) != (own_cost, own_quality)
            for cost, quality in points
        )
        for own_cost, own_quality in points
    ]
