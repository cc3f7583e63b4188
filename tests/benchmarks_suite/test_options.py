"""Context and continuations of an item's options, and the choice among them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dare_eval.decoding.likelihood.options import ElboResult, LikelihoodOptions
from dare_eval.errors import UsageError
from dare_eval.inferencers.likelihood import LikelihoodTask, ScoredOption, choose
from dare_eval.inferencers.options import common_prefix, split_after, split_options

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=8)


@given(st.lists(IDS, min_size=1, max_size=5))
def test_split_keeps_every_id_and_shares_one_context(prompts):
    pairs = split_options(prompts)
    assert [context + rest for context, rest in pairs] == prompts
    assert all(rest for _, rest in pairs)
    assert len({tuple(context) for context, _ in pairs}) == 1
    context = len(pairs[0][0])
    assert context == min(common_prefix(prompts), min(map(len, prompts)) - 1)


def test_option_that_begins_another_keeps_its_last_token():
    assert split_options([[5, 6, 7], [5, 6, 7, 8]]) == [([5, 6], [7]), ([5, 6], [7, 8])]


@given(IDS, IDS)
def test_split_after_scores_a_token_across_the_border_whole(context, rest):
    found, continuation = split_after(context, context + rest)
    assert (found, continuation) == (context, rest)
    other = [*context[:-1], 9, *rest]  # the border token was merged with its neighbour
    assert split_after(context, other) == (context[:-1], [9, *rest])


def option(label, loglik, n_tokens=2, n_bytes=4, stderr=0.1):
    return ScoredOption(label, ElboResult(loglik=loglik, n_tokens=n_tokens, stderr=stderr, nfe=3), n_bytes)


def test_ranking_by_token_sum_and_byte_may_differ():
    options = [option("A", -4.0, 1, 4), option("B", -6.0, 3, 4), option("C", -6.6, 4, 12)]
    assert choose(options, "sum")[0].label == "A"
    assert choose(options, "token")[0].label == "C"
    assert choose(options, "byte")[0].label == "C"
    _, lead = choose(options, "sum")
    assert lead["margin"] == pytest.approx(2.0)
    assert lead["margin_stderr"] == pytest.approx(math.hypot(0.1, 0.1))


def test_of_equal_options_the_first_wins_and_unknown_noise_stays_unknown():
    best, lead = choose([option("A", -1.0, stderr=math.nan), option("B", -1.0)], "sum")
    assert best.label == "A"
    assert lead == {"margin": 0.0, "margin_stderr": None}
    assert option("A", -1.0, stderr=math.nan).to_dict()["stderr"] is None
    assert choose([option("A", -1.0)], "sum")[1] == {}


def test_settings_are_checked_and_come_back():
    task = LikelihoodTask.build({"mc_num": 16, "rank_by": "byte"})
    assert task == LikelihoodTask(LikelihoodOptions(mc_num=16), "byte")
    assert LikelihoodTask.build(task.to_dict()) == task
    with pytest.raises(UsageError, match="mc_num"):
        LikelihoodTask.build({"mcnum": 4})
    with pytest.raises(UsageError, match="token"):
        LikelihoodTask.build({"rank_by": "tokens"})
    with pytest.raises(UsageError, match="mc_num"):
        LikelihoodTask.build({"mc_num": 0})
