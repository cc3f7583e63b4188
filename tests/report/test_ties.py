"""Tie groups: what cannot be told from the best stands with it, what may not be compared stands apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dare_eval.report.ties import REFUSED, Tie, tie_groups


def by_table(table):
    return lambda a, b: table.get((a, b), table.get((b, a)))


def test_groups_start_at_the_best_of_what_is_left():
    table = {("a", "b"): 0.9, ("a", "c"): 0.001, ("a", "d"): 0.001, ("c", "d"): 0.5, ("b", "c"): 0.6, ("b", "d"): 0.6}
    found = tie_groups(["a", "b", "c", "d"], by_table(table))
    assert found == {"a": Tie(0, 1, 2), "b": Tie(0, 1, 2), "c": Tie(0, 2, 2), "d": Tie(0, 2, 2)}


def test_holm_makes_more_tests_stricter():
    table = {("a", other): 0.03 for other in "bcd"} | {("b", "c"): 1.0, ("b", "d"): 1.0, ("c", "d"): 1.0}
    assert tie_groups(["a", "b"], by_table(table))["b"].group == 2
    assert {tie.group for tie in tie_groups(list("abcd"), by_table(table)).values()} == {1}


def test_results_that_may_not_be_compared_form_a_pool_of_their_own():
    table = {("a", "b"): REFUSED, ("a", "c"): REFUSED, ("b", "c"): 0.001}
    found = tie_groups(["a", "b", "c"], by_table(table))
    assert found == {"a": Tie(1, 1, 1), "b": Tie(0, 1, 1), "c": Tie(0, 2, 1)}, "the larger pool comes first"


def test_results_without_tests_are_in_no_group_and_one_result_alone_is():
    table = {("b", "c"): 0.5}
    assert set(tie_groups(["a", "b", "c"], by_table(table))) == {"b", "c"}
    assert tie_groups(["a"], by_table({})) == {"a": Tie(0, 1, 1)} and tie_groups([], by_table({})) == {}


@given(st.integers(1, 7), st.data())
def test_every_tested_result_is_in_one_group_and_a_leader_is_never_tied_with_the_next_group(n, data):
    keys = list(range(n))
    answers = st.one_of(st.floats(0, 1), st.just(REFUSED), st.none())
    table = {(a, b): data.draw(answers) for a in keys for b in keys if a < b}
    found = tie_groups(keys, by_table(table))
    for key in keys:
        tested = any(by_table(table)(key, other) is not None for other in keys if other != key)
        assert (key in found) == (tested or n == 1)
    sizes = {}
    for tie in found.values():
        sizes.setdefault((tie.pool, tie.group), []).append(tie.size)
    assert all(set(size) == {len(size)} for size in sizes.values())
