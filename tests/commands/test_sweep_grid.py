"""Which settings a grid stands for, and how each differs from the base."""

from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.runtime.sweep_grid import expand, parse_grid
from dare_eval.spec import POLICIES, DecodeSpec, policy_fields
from dare_eval.spec.tables import CACHES, POLICY_GUARDED

BASE = {"gen_length": 16, "block_length": 16, "steps": 16}


def labels(grid, base=BASE, **options):
    return [setting.label for setting in expand(base, grid, **options)]


def test_each_policy_takes_the_fields_it_reads_and_equal_settings_stand_once():
    grid = parse_grid({"policy": "quota,threshold", "steps": "16,4", "threshold": "0.9"}, [])
    assert labels(grid) == ["policy=quota,steps=16", "policy=quota,steps=4", "policy=threshold,threshold=0.9"]
    spec = DecodeSpec.build("llada", **expand(BASE, grid)[-1].decoding)
    assert (spec.policy, spec.threshold, spec.steps) == ("threshold", 0.9, None)


def test_all_stands_for_every_policy_and_cache_and_no_setting_carries_a_field_its_policy_ignores():
    grid = parse_grid({"policy": "all", "cache": "all", "steps": "4"}, [])
    found = expand(BASE, grid)
    assert {(one.fields["policy"], one.fields["cache"]) for one in found} == {
        (policy, cache) for policy in POLICIES.names() for cache in CACHES
    }
    for one in found:
        unread = set(POLICY_GUARDED) - policy_fields(one.fields["policy"])
        assert not {key for key in unread if one.decoding.get(key) is not None}
        if "threshold" in policy_fields(one.fields["policy"]):
            assert one.decoding["threshold"] is not None


def test_settings_that_differ_in_speed_only_are_one_curve():
    grid = parse_grid({"steps": "8,4", "cache": "none,dual"}, ["eos_rule=none"])
    assert {one.curve for one in expand(BASE, grid)} == {"cache=none,eos_rule=none", "cache=dual,eos_rule=none"}
    assert {one.curve for one in expand(BASE, parse_grid({"steps": "8,4"}, []))} == {"all settings"}


def test_a_preset_keeps_its_own_values_and_loses_those_the_policy_does_not_read():
    base, resolved = {"preset": "sdar-8b-chat"}, {"policy": "dynamic", "threshold": 0.95, "steps": 4, "gen_length": 8}
    assert labels(parse_grid({"block_length": "4,8"}, []), base, resolved=resolved) == [
        "block_length=4",
        "block_length=8",
    ]
    [setting] = expand(base, parse_grid({"policy": "threshold"}, []), resolved)
    assert setting.decoding == {"preset": "sdar-8b-chat", "steps": None, "policy": "threshold", "threshold": 0.9}


def test_lists_are_values_and_stand_in_the_name_without_commas_or_brackets():
    base = {**BASE, "eos_rule": "eoser"}
    grid = parse_grid({}, ["eos_gamma=[0.1, 1.0],[4e-1,1]", "stop_ids=[1,2]"])
    assert grid == {"eos_gamma": [[0.1, 1.0], [0.4, 1]], "stop_ids": [[1, 2]]}
    assert labels(grid, base) == ["eos_gamma=0.1+1.0,stop_ids=1+2", "eos_gamma=0.4+1,stop_ids=1+2"]
    spec = DecodeSpec.build("llada", **expand(base, grid)[1].decoding)
    assert (spec.eos_gamma, spec.stop_ids) == ((0.4, 1.0), (1, 2))
    assert labels(parse_grid({}, ["parity=[],[idle_cached_pass]"])) == ["parity=none", "parity=idle_cached_pass"]


def test_one_stop_id_per_setting():
    found = expand(BASE, parse_grid({}, ["stop_ids=1,2"]))
    assert [DecodeSpec.build("llada", **one.decoding).stop_ids for one in found] == [(1,), (2,)]


def test_values_are_read_as_everywhere_else():
    assert parse_grid({"threshold": "9e-1,.5,1", "cache": "none"}, ["refresh=null"]) == {
        "threshold": [0.9, 0.5, 1], "cache": ["none"], "refresh": [None],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "others", "said"),
    [
        ({}, [], "nothing to sweep"),
        ({"steps": " , "}, [], "no value for 'steps'"),
        ({}, ["steps"], "not key=value"),
        ({}, ["stepz=4"], "did you mean 'steps'"),
        ({}, ["eos_gamma=[0.1,1"], "the value of 'eos_gamma' cannot be read"),
        ({"policy": "quotta"}, [], "did you mean 'quota'"),
        ({"policy": "threshold", "steps": "4"}, [], "no policy of this sweep reads 'steps'"),
    ],
)
def test_what_cannot_be_a_grid_is_refused_with_the_reason(options, others, said):
    with pytest.raises(UsageError) as refused:
        expand(BASE, parse_grid(options, others))
    assert said in refused.value.what
