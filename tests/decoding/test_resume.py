"""Decoding that begins in the middle: what is given stays, no mask is left, and the batch does not matter."""

from __future__ import annotations

import dataclasses
import random

import pytest

from dare_eval.decoding import decode
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec, family_traits
from dare_train.rl.trees import Cut
from tests.decoding.conftest import prompts, tiny

MASK = 126
FAMILIES = ("llada", "dream", "sdar", "llada2")


def assert_continues(results, committed, mask=MASK) -> None:
    for result, given in zip(results, committed, strict=True):
        assert mask not in result.response
        assert all(new == old for new, old in zip(result.response, given, strict=False) if old != mask)
        assert [step == -1 for step in result.step_map][: len(given)] == [token != mask for token in given]


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
@pytest.mark.parametrize("block", [4, 8])
def test_dream_keeps_a_first_position_that_is_committed(cache, block):
    given = DecodeSpec.build("dream", gen_length=8, block_length=block, cache=cache)
    committed = [[11, 12, *[MASK] * 6]]
    assert_continues(decode(tiny("dream"), [[5, 6, 7]], given, committed=committed), committed)


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
@pytest.mark.parametrize("policy", ["quota", "origin", "threshold"])
def test_dream_rows_that_differ_in_their_first_position_do_not_disturb_each_other(cache, policy):
    settings = {"policy": policy, "temperature": 0.7} | ({"threshold": 0.4} if policy == "threshold" else {})
    given = DecodeSpec.build("dream", gen_length=8, block_length=4, cache=cache, **settings)
    batch, seeds = prompts((3, 5, 3, 7)), [1, 2, 3, 4]
    committed = [[MASK, 12, 13], [11, MASK, 12], [21, 22, 23, 24, 25], []]
    together = decode(tiny("dream"), batch, given, row_seeds=seeds, committed=committed)
    assert_continues(together, committed)
    for row, result in enumerate(together):
        alone = decode(tiny("dream"), [batch[row]], given, row_seeds=[seeds[row]], committed=[committed[row]])[0]
        assert (alone.response, alone.nfe, alone.step_map) == (result.response, result.nfe, result.step_map)


def test_a_row_whose_first_position_is_committed_uses_every_pass_that_is_left():
    given = DecodeSpec.build("dream", gen_length=8, steps=4, cache="dual")
    result = decode(tiny("dream"), [[5, 6, 7]], given, committed=[[11, *[MASK] * 7]])[0]
    assert result.nfe == 4 and 0 in result.step_map


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_a_tree_of_dream_branches_at_a_step(cache):
    given = DecodeSpec.build("dream", gen_length=8, cache=cache, temperature=1.0, steps=8)
    before = decode(tiny("dream"), [[5, 6, 7]], given, row_seeds=[1])[0]
    cut = Cut(None, 4)
    state = cut.state(before, given, MASK)
    assert state.count(MASK) == 4
    assert_continues(decode(tiny("dream"), [[5, 6, 7]], cut.rest(given), row_seeds=[2], committed=[state]), [state])


@pytest.mark.parametrize("policy", ["quota", "threshold"])
def test_rows_with_different_full_blocks_share_the_block_cache(policy):
    settings = {"policy": policy, "early_stop": "none"} | ({"threshold": 0.4} if policy == "threshold" else {})
    batch = [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15]]
    committed = [[20, 21, 22, 23], [MASK] * 4, [30, 31, 32, 33, 34, MASK, 35]]
    results = [
        decode(
            tiny("sdar"),
            batch,
            DecodeSpec.build("sdar", gen_length=8, block_length=4, cache=cache, **settings),
            committed=committed,
        )
        for cache in ("none", "block")
    ]
    assert_continues(results[1], committed)
    assert [r.response for r in results[0]] == [r.response for r in results[1]]


def test_a_tree_of_a_block_causal_family_branches_with_unequal_prompts():
    given = DecodeSpec.build(
        "sdar", gen_length=8, block_length=8, cache="block", temperature=1.0, steps=4, early_stop="none"
    )
    batch, cut = [[5] * 5, [7] * 8], Cut(None, 2)
    states = [cut.state(r, given, MASK) for r in decode(tiny("sdar"), batch, given, row_seeds=[1, 2])]
    assert states[1].count(MASK) == 4, "two passes of two tokens; storing the prompt's block is none of them"
    rest = cut.rest(given)
    cached = decode(tiny("sdar"), batch, rest, row_seeds=[3, 4], committed=states)
    plain = decode(tiny("sdar"), batch, dataclasses.replace(rest, cache="none"), row_seeds=[3, 4], committed=states)
    assert_continues(cached, states)
    assert [r.response for r in cached] == [r.response for r in plain]


def cases(count: int):
    chance = random.Random(3)
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        caches = [cache for cache in family_traits(family).caches if (family, cache) != ("llada", "block")]
        policy = chance.choice(["quota", "threshold", "random", "sequential", "factor", "carry"])
        settings = {"policy": policy, "cache": chance.choice(caches), "block_length": chance.choice([2, 4, 8])}
        settings |= {"threshold": 0.3} if policy in ("threshold", "carry") else {}
        committed = [[chance.choice([MASK, chance.randrange(2, 120)]) for _ in range(8)] for _ in range(3)]
        if number % 2:
            committed[0][: settings["block_length"]] = [33] * settings["block_length"]
        yield family, settings, committed


@pytest.mark.parametrize(("family", "settings", "committed"), list(cases(48)))
def test_any_state_is_continued_and_the_batch_does_not_matter(family, settings, committed):
    given = DecodeSpec.build(family, gen_length=8, early_stop="none", **settings)
    batch = prompts((3, 5, 4))
    together = decode(tiny(family), batch, given, committed=committed)
    assert_continues(together, committed)
    alone = [decode(tiny(family), [p], given, committed=[c])[0] for p, c in zip(batch, committed, strict=True)]
    assert [(r.response, r.nfe) for r in alone] == [(r.response, r.nfe) for r in together]


@pytest.mark.parametrize(
    ("committed", "words"),
    [
        ([[1], [10**6]], r"committed response 1(.|\n)*1000000(.|\n)*0 \.\. 127"),
        ([[-3], [1]], r"committed response 0(.|\n)*-3"),
        (["ab", [1]], "committed response 0 is no list of token ids"),
        ([[1], None], "committed response 1 is no list of token ids"),
        ([[1.0], [1]], "committed response 0 is no list of token ids"),
        ([[1], [True]], "committed response 1 is no list of token ids"),
        ([], "0 responses for 2 prompts"),
        ([[1], [2], [3]], "3 responses for 2 prompts"),
        ([[1], [2] * 5], r"do not fit: number 1(.|\n)*5 tokens(.|\n)*at most 4"),
    ],
)
def test_committed_responses_that_do_not_fit_are_refused(committed, words):
    with pytest.raises(UsageError, match=words):
        decode(tiny("llada"), [[5], [7, 8]], DecodeSpec.build("llada", gen_length=4), committed=committed)
