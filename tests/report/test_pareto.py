from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dare_eval.report.pareto import pareto

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def test_known_front():
    assert pareto([(1, 50), (2, 70), (2, 60), (4, 70), (8, 71)]) == [True, True, False, False, True]
    assert pareto([(1, 50), (1, 50)]) == [True, True]
    assert pareto([]) == []


@given(POINTS)
def test_every_dominated_point_is_dominated_by_one_of_the_front_and_no_two_of_the_front_dominate(points):
    flags = pareto(points)
    front = [point for point, flag in zip(points, flags, strict=True) if flag]
    for cost, quality in set(points) - set(front):
        assert any(c <= cost and q >= quality for c, q in front)
    costs = sorted(set(front))
    assert [quality for _, quality in costs] == sorted({quality for _, quality in costs})
