"""Group advantages: invariances of every choice."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dare_train.advantages import group_advantages

CHOICES = [{}, {"by_std": True}, {"baseline": "leave_one_out"}, {"baseline": "leave_one_out", "by_std": True}]
REWARDS = st.lists(st.tuples(st.floats(-2, 2, width=32), st.integers(0, 3)), min_size=1, max_size=16)


@given(rows=REWARDS, shift=st.floats(-3, 3, width=32), choice=st.sampled_from(CHOICES))
def test_they_sum_to_nothing_in_a_group_and_ignore_a_shift(rows, shift, choice):
    reward = torch.tensor([r for r, _ in rows], dtype=torch.float64)
    group = torch.tensor([g for _, g in rows])
    found = group_advantages(reward, group, **choice)
    for number in group.unique():
        assert float(found[group == number].sum()) == pytest.approx(0.0, abs=1e-9)
    if "by_std" not in choice:
        torch.testing.assert_close(group_advantages(reward + shift, group, **choice), found, rtol=0, atol=1e-6)


@given(rows=REWARDS, order=st.randoms(use_true_random=False))
def test_the_layout_of_the_batch_does_not_matter(rows, order):
    place = list(range(len(rows)))
    order.shuffle(place)
    reward = torch.tensor([r for r, _ in rows], dtype=torch.float64)
    group = torch.tensor([g for _, g in rows])
    moved = group_advantages(reward[place], group[place], by_std=True)
    torch.testing.assert_close(moved, group_advantages(reward, group, by_std=True)[place], rtol=0, atol=1e-9)


def test_values():
    reward, group = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.7]), torch.tensor([5, 5, 5, 5, 2])
    assert group_advantages(reward, group).tolist() == pytest.approx([0.75, -0.25, -0.25, -0.25, 0.0])
    left = group_advantages(reward, group, baseline="leave_one_out").tolist()
    assert left == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3, 0.0])
    scaled = group_advantages(reward, group, by_std=True, delta=0.0).tolist()
    assert scaled == pytest.approx([1.5, -0.5, -0.5, -0.5, 0.0])
    assert group_advantages(torch.ones(3, dtype=torch.int), torch.zeros(3), by_std=True).tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="unknown baseline"):
        group_advantages(reward, group, baseline="max")
