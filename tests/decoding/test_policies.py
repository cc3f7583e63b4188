"""Transfer policies on written-down confidences, and what must hold for every one of them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from dare_eval.decoding.step import Step, best, ranks
from dare_eval.spec import POLICIES, POLICY_FIELDS, DecodeSpec

VALUES = {"threshold": 0.9, "factor": 1.0, "steps": 4}


def policy_of(name: str, **given_settings):
    fields = {key: value for key, value in VALUES.items() if key in POLICY_FIELDS[name]}
    family = "dream" if "alg_temp" in given_settings else "llada"
    spec = DecodeSpec.build(family, gen_length=8, block_length=8, policy=name, **{**fields, **given_settings})
    return POLICIES.get(name)(spec)


def step_of(scores, live=None, *, due=1, index=0, steps=4, fraction=0.25, uniform=None) -> Step:
    score_RM = torch.tensor(scores)
    live_RM = torch.ones_like(score_RM, dtype=torch.bool) if live is None else torch.tensor(live)
    return Step(
        score_RM=score_RM.masked_fill(~live_RM, -torch.inf),
        tokens_RM=torch.zeros_like(score_RM, dtype=torch.long),
        live_RM=live_RM,
        masks=live_RM.sum(-1).tolist(),
        due=[due] * len(score_RM) if isinstance(due, int) else due,
        index=index,
        steps=steps,
        fraction=fraction,
        uniform_RM=torch.full_like(score_RM, 0.5, dtype=torch.float64) if uniform is None else torch.tensor(uniform),
    )


def chosen(name: str, scores, **kwargs) -> list[int]:
    spec_settings = kwargs.pop("spec", {})
    return policy_of(name, **spec_settings).select(step_of([scores], **kwargs))[0].nonzero()[:, 0].tolist()


def test_ties_go_to_the_lowest_column():
    assert ranks(torch.tensor([[0.5, 0.5, 0.9, 0.5]])).tolist() == [[1, 2, 0, 3]]
    assert best(step_of([[0.5, 0.5, 0.5]]), torch.tensor([[0.5, 0.5, 0.5]]), [2]).tolist() == [[True, True, False]]


def test_quota_takes_the_best_and_never_a_dead_candidate():
    assert chosen("quota", [0.1, 0.4, 0.3, 0.2], due=2) == [1, 2]
    assert chosen("quota", [0.1, 0.4, 0.3, 0.2], live=[[True, False, True, True]], due=9) == [0, 2, 3]


def test_threshold_keeps_what_passes_and_at_least_one():
    assert chosen("threshold", [0.95, 0.9, 0.89, 0.2]) == [0, 1]
    assert chosen("threshold", [0.5, 0.7, 0.7]) == [1]


def test_carry_over_considers_the_budget_plus_what_was_refused():
    # 8 masks over 4 steps: two are considered at first, four when both earlier steps committed only one each.
    assert chosen("carry", [0.95, 0.5, 0.99, 0.94] + [0.1] * 4) == [0, 2]
    assert chosen("carry", [0.95, 0.93, 0.99, 0.94, 0.91, 0.92], index=2, steps=4) == [0, 1, 2, 3]
    assert chosen("carry", [0.5, 0.6], index=7) == [1]


def test_factor_stops_at_the_first_rank_that_fails():
    # Bounds for factor 1 at ranks 2, 3, 4: 1 - 1/3, 1 - 1/4, 1 - 1/5.
    assert chosen("factor", [0.9, 0.7, 0.74, 0.1]) == [0, 2]
    assert chosen("factor", [0.9, 0.8, 0.7, 0.1]) == [0, 1]
    assert chosen("factor", [0.2, 0.1]) == [0, 1]  # fails at the last rank only: kept, as published
    assert chosen("factor", [0.2, 0.1, 0.1]) == [0]


def test_frechet_profile_equals_the_factor_rule_for_equal_confidences_and_exceeds_it_otherwise():
    # (n + 1)(1 - c) < 1 at c = 0.79 holds up to n = 3.
    assert chosen("frechet", [0.79] * 6) == [0, 1, 2]
    assert chosen("frechet", [0.99, 0.99, 0.99, 0.6]) == [0, 1, 2, 3]  # 0.43 + 0.4 < 1
    assert chosen("frechet", [0.99, 0.99, 0.99, 0.5]) == [0, 1, 2]  # 0.53 + 0.5 > 1
    assert chosen("frechet", [0.3, 0.2]) == [0]


def test_dynamic_takes_the_confident_or_the_due():
    assert chosen("dynamic", [0.95, 0.92, 0.91, 0.1], due=2) == [0, 1, 2]
    assert chosen("dynamic", [0.95, 0.9, 0.3, 0.1], due=2) == [0, 1]
    assert chosen("dynamic", [0.9, 0.1], due=1) == [0]  # strictly above the threshold


def test_sequential_is_left_to_right():
    assert chosen("sequential", [0.1, 0.9, 0.9, 0.9], live=[[False, True, True, True]], due=2) == [1, 2]


def test_entropy_bound_adds_up_the_lowest_entropies():
    assert chosen("eb", [-0.5, -0.1, -0.3, -2.0], spec={"threshold": 0.95}) == [0, 1, 2]
    assert chosen("eb", [-0.5, -0.1, -0.3, -2.0], spec={"threshold": 0.4}) == [1]
    assert chosen("eb", [-5.0, -4.0], spec={"threshold": 0.4}) == [1]


def test_origin_reveals_by_its_draws_and_at_least_one():
    assert chosen("origin", [0.0] * 4, uniform=[[0.1, 0.3, 0.24, 0.9]]) == [0, 2]
    assert chosen("origin", [0.0] * 3, uniform=[[0.8, 0.3, 0.9]]) == [1]


@pytest.mark.parametrize("name", sorted(POLICY_FIELDS))
def test_class_declares_the_fields_the_table_lists(name):
    assert POLICIES.get(name).fields == POLICY_FIELDS[name]


@pytest.mark.parametrize("name", sorted(POLICY_FIELDS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_policy_commits_masks_only_and_at_least_one(name, data):
    rows, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 8))
    number = st.floats(0, 1, width=32)
    scores = data.draw(st.lists(st.lists(number, min_size=width, max_size=width), min_size=rows, max_size=rows))
    flags = st.lists(st.booleans(), min_size=width, max_size=width).filter(any)
    live = data.draw(st.lists(flags, min_size=rows, max_size=rows))
    uniform = data.draw(
        st.lists(st.lists(st.floats(1e-9, 0.999), min_size=width, max_size=width), min_size=rows, max_size=rows)
    )
    due = [min(data.draw(st.integers(1, 8)), sum(flag)) for flag in live]
    step = step_of(scores, live, due=due, index=data.draw(st.integers(0, 5)), uniform=uniform)
    policy = policy_of(name)
    commit_RM = policy.select(step)
    assert not (commit_RM & ~step.live_RM).any()
    assert commit_RM.any(-1).all()
    counts = policy.counts(step)
    assert counts is None or commit_RM.sum(-1).tolist() == counts
