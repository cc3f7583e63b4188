"""DecodeSpec: defaults, identity, and refusals that name the value, what is allowed and what works."""

from __future__ import annotations

import dataclasses
import json
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from dare_eval.errors import UsageError
from dare_eval.spec import PARITY_SWITCHES, POLICY_FIELDS, DecodeSpec, check_token_ids, family_traits
from dare_eval.spec.tables import CACHES, FAMILY_TRAITS

BASE = {"gen_length": 16, "block_length": 8}


def build(family="llada", **changes) -> DecodeSpec:
    return DecodeSpec.build(family, **{**BASE, **changes})


@pytest.mark.parametrize(
    ("family", "changes", "expected"),
    [
        ("llada", {}, {"steps": 16, "policy": "quota", "cache": "none", "early_stop": "none"}),
        ("llada", {"block_length": None}, {"block_length": 16}),
        ("llada", {"policy": "threshold", "threshold": 0.9}, {"steps": None}),
        ("llada", {"policy": "factor"}, {"factor": 1.0}),
        ("llada", {"eos_rule": "eoser"}, {"eos_gamma": (0.4, 1.0)}),
        ("llada", {"schedule": "ascending", "eos_rule": "eoser"}, {"steps": 4, "eos_gamma": (0.01, 1.0)}),
        ("dream", {"alg_temp": 0}, {"alg_temp": None, "eps": 1e-3, "top_k": None}),
        ("sdar", {"block_length": None, "gen_length": 17}, {"block_length": 4, "steps": 20, "early_stop": "block"}),
        ("llada2", {"block_length": None, "gen_length": 64}, {"block_length": 32, "steps": 64}),
        (
            "llada2",
            {"policy": "dynamic", "threshold": 0.7, "edit_threshold": 0.5},
            {"steps": None, "min_transfer": 1, "max_post_steps": 16},
        ),
    ],
)
def test_defaults_are_filled_in(family, changes, expected):
    spec = build(family, **changes)
    assert {key: getattr(spec, key) for key in expected} == expected


def test_identity():
    assert build().digest() == build(steps=16).digest() != build(steps=8).digest()
    assert build().digest() != build(cache="prefix", parity=["idle_cached_pass"]).digest()
    assert build(temperature=1).digest() == build(temperature=1.0).digest()
    assert build(eos_rule="eoser", eos_gamma=[0, 1]).digest() == build(eos_rule="eoser", eos_gamma=(0.0, 1.0)).digest()
    assert build(stop_ids=7).digest() == build(stop_ids=[7]).digest()
    assert build("dream", parity="zero_commit_steps").parity == ("zero_commit_steps",)
    spec = build(stop_ids=[3, 4], eos_rule="eoser")
    assert DecodeSpec.from_dict(spec.to_dict()) == spec
    assert DecodeSpec.from_dict(spec.to_dict()).digest() == spec.digest()


REFUSED = [
    ("llada", {"gen_lenght": 256}, ["gen_lenght", "gen_length"]),
    ("lada", {}, ["lada", "llada"]),
    ("llada", {"policy": "treshold"}, ["threshold"]),
    ("llada", {"cache": "duel"}, ["duel", "dual"]),
    ("llada", {"temperature": -0.1}, ["temperature", "-0.1", "at least 0"]),
    ("llada", {"temperature": float("nan")}, ["temperature"]),
    ("llada", {"temperature": "hot"}, ["temperature", "hot"]),
    (
        "llada",
        {"gen_length": 128, "block_length": 48, "steps": 64},
        ["128", "48", "multiple", "block_length = 32", "144"],
    ),
    ("llada", {"gen_length": None}, ["gen_length", "missing"]),
    ("llada", {"gen_length": True}, ["gen_length"]),
    ("llada", {"steps": 5}, ["steps 5", "2 blocks", "multiple of 2", "steps = 4"]),
    ("llada", {"steps": 32}, ["at most 16"]),
    ("llada", {"policy": "threshold"}, ["needs 'threshold'", "0.9"]),
    ("llada", {"policy": "threshold", "threshold": 1.5}, ["threshold", "[0, 1]"]),
    ("llada", {"policy": "threshold", "threshold": 0.9, "steps": 4}, ["threshold", "does not use 'steps'", "remove"]),
    ("llada", {"threshold": 0.9}, ["quota", "does not use 'threshold'"]),
    ("llada", {"policy": "threshold", "threshold": 0.9, "factor": 1.0}, ["does not use 'factor'"]),
    ("llada", {"alg_temp": 0.5}, ["family 'llada' does not use 'alg_temp'"]),
    ("llada", {"edit_threshold": 0.5}, ["edit_threshold"]),
    ("llada", {"cache": "dual", "cfg_scale": 1.0}, ["dual", "guidance", "prefix"]),
    ("llada", {"top_k": 5}, ["top_k", "temperature 0"]),
    ("llada", {"refresh": 2}, ["refresh", "cache"]),
    ("llada", {"eos_gamma": [0.1, 1.0]}, ["eos_gamma", "eoser"]),
    ("llada", {"eos_rule": "eoser", "eos_gamma": [0.1, 2.0]}, ["eos_gamma"]),
    ("llada", {"eos_rule": "eoser", "policy": "threshold", "threshold": 0.9}, ["eoser", "steps"]),
    ("llada", {"eos_rule": "confidence_eos_eot_inf", "policy": "entropy"}, ["entropy", "quota"]),
    ("llada", {"schedule": "ascending", "steps": 7}, ["steps 7", "16", "steps = 4"]),
    ("llada", {"schedule": "ascending", "policy": "entropy"}, ["schedule", "quota"]),
    ("llada", {"policy": "suffix", "threshold": 0.9, "cache": "prefix"}, ["suffix", "cache = none"]),
    ("sdar", {"policy": "suffix", "threshold": 0.9}, ["suffix", "block-causal"]),
    ("llada", {"stop_ids": ["</s>"]}, ["stop_ids"]),
    ("llada", {"parity": ["zero_commit"]}, ["zero_commit", "zero_commit_steps"]),
    ("llada", {"parity": ["overwrite_committed"]}, ["llada", "overwrite_committed"]),
    ("dream", {"schedule": "ascending"}, ["dream", "schedule"]),
    ("dream", {"cache": "block"}, ["dream", "block", "dual"]),
    ("sdar", {"cache": "prefix"}, ["prefix", "cache = block"]),
    ("sdar", {"cfg_scale": 1.0}, ["sdar", "cfg_scale"]),
    ("sdar", {"steps": 9, "gen_length": 17, "block_length": 4}, ["9", "5 blocks", "steps = 10"]),
    ("llada2", {"policy": "dynamic", "threshold": 0.9, "steps": 8, "min_transfer": 2}, ["steps", "min_transfer"]),
    ("llada2", {"policy": "dynamic", "threshold": 0.9, "max_post_steps": 2}, ["max_post_steps", "edit_threshold"]),
    ("llada", {"gen_length": 1, "block_length": None, "schedule": "ascending"}, ["one token", "at least 2", "equal"]),
    ("llada", {"gen_length": 1, "block_length": 1, "steps": 1, "schedule": "ascending"}, ["at least 2", "equal"]),
    (None, {}, ["model family 'None'", "llada"]),
    ({}, {}, ["model family '{}'", "llada"]),
    ("llada", {"policy": None}, ["decoding policy 'None'", "quota"]),
    ("llada", {"policy": 1}, ["decoding policy '1'", "quota"]),
    ("llada", {"policy": {}}, ["decoding policy '{}'", "quota"]),
    ("llada", {"parity": None}, ["parity", "None", "idle_cached_pass"]),
    ("llada", {"parity": 1}, ["parity", "1", "idle_cached_pass"]),
    ("llada", {"parity": [[1]]}, ["parity switch '[1]'", "idle_cached_pass"]),
    ("llada", {"cache": None}, ["cache setting 'None'", "dual"]),
    ("llada", {"schedule": []}, ["schedule setting '()'", "ascending"]),
    ("llada", {"temperature": None}, ["temperature", "None", "at least 0"]),
    ("llada", {"cfg_scale": 10**400}, ["cfg_scale", "finite"]),
    ("llada", {"stop_ids": None}, ["stop_ids", "None", "token ids"]),
    ("llada", {"stop_ids": {1: 2}}, ["stop_ids", "token ids"]),
    ("llada", {"stop_ids": [0.0]}, ["stop_ids", "token ids"]),
    ("llada", {"eos_rule": "eoser", "eos_gamma": [True, 1]}, ["eos_gamma", "two factors"]),
    ("llada", {"eos_rule": "eoser", "eos_gamma": 0.5}, ["eos_gamma", "two factors"]),
    ("llada", {"seed": 0.0}, ["seed", "0.0", "an integer of at least 0"]),
    *[("llada", {"engine": odd}, ["engine", "name of an engine"]) for odd in (None, float("nan"), [], {}, True, b"x")],
]


@pytest.mark.parametrize(("family", "changes", "words"), REFUSED, ids=[f"{f}-{c}"[:60] for f, c, _ in REFUSED])
def test_refusals_say_what_works(family, changes, words):
    with pytest.raises(UsageError) as caught:
        build(family, **changes)
    for word in words:
        assert word in str(caught.value)


def test_a_record_without_a_seed_has_seed_0():
    assert DecodeSpec.from_dict(build().to_dict() | {"seed": None}).digest() == build().digest()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.integers(), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=500, deadline=None)
@given(key=st.sampled_from([field.name for field in dataclasses.fields(DecodeSpec)][1:]), value=ANYTHING)
def test_whatever_a_setting_is_given_it_is_refused_or_recorded(key, value):
    try:
        spec = build(**{key: value})
    except UsageError as error:
        assert error.what and str(error)
        return
    assert DecodeSpec.from_dict(json.loads(json.dumps(spec.to_dict()))).digest() == spec.digest()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"gen_length": 128, "block_length": 48, "steps": 64}, "block_length"),
        ({"steps": 5}, "steps"),
        ({"steps": 32}, "steps"),
    ],
)
def test_the_remedy_works(changes, key):
    with pytest.raises(UsageError) as caught:
        build(**changes)
    value = int(re.search(rf"{key} = (\d+)", caught.value.remedy).group(1))
    assert build(**{**changes, key: value})


@pytest.mark.parametrize("family", sorted(FAMILY_TRAITS))
@pytest.mark.parametrize("cache", CACHES)
def test_each_family_takes_its_caches_only(family, cache):
    if cache in family_traits(family).caches:
        assert build(family, cache=cache).cache == cache
    else:
        with pytest.raises(UsageError, match=cache):
            build(family, cache=cache)


def test_every_parity_switch_belongs_to_a_family():
    assert {name for traits in FAMILY_TRAITS.values() for name in traits.parity} == set(PARITY_SWITCHES)


def test_token_ids():
    check_token_ids(mask_id=3, pad_id=1, vocab_size=4)
    for ids, word in (
        ({"mask_id": None, "pad_id": 1}, "mask_token_id"),
        ({"mask_id": 3, "pad_id": 3}, "pad_token_id"),
        ({"mask_id": 9, "pad_id": 3, "vocab_size": 5}, "0 .. 4"),
    ):
        with pytest.raises(UsageError, match=word):
            check_token_ids(**ids)


@settings(max_examples=200, deadline=None)
@given(
    family=st.sampled_from(sorted(FAMILY_TRAITS)),
    policy=st.sampled_from(sorted(POLICY_FIELDS)),
    length=st.integers(1, 40),
    block=st.integers(1, 40),
    steps=st.none() | st.integers(1, 60),
    cache=st.sampled_from(CACHES),
    threshold=st.none() | st.floats(0, 1),
)
def test_a_spec_is_refused_or_complete(family, policy, length, block, steps, cache, threshold):
    wanted = {"gen_length": length, "block_length": block, "policy": policy, "cache": cache}
    try:
        spec = DecodeSpec.build(family, **wanted, steps=steps, threshold=threshold)
    except UsageError as error:
        assert error.what
        return
    assert DecodeSpec.from_dict(spec.to_dict()) == spec
    assert spec.steps is None or spec.steps % spec.blocks == 0
