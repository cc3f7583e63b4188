"""Settings and logits at the edge: no temperature, huge guidance, damaged weights, filters that leave EOS alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from dare_eval.decoding import RecordOptions, decode
from dare_eval.decoding.sampler import ValueSampler, draw
from dare_eval.decoding.schedule import Budget, plan_blocks
from dare_eval.decoding.step import Step
from dare_eval.errors import DataError, UsageError
from dare_eval.spec import POLICIES, DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.decoding.toy import ToyNetwork, constant


def table_network(row, family: str = "llada", **config) -> ToyNetwork:
    """Return a network that gives every position the same logits, the mask last."""
    return ToyNetwork(
        constant(dict.fromkeys(range(64), row), len(row)), len(row), len(row) - 1, family=family, **config
    )


@pytest.mark.parametrize("settings", [{"temperature": 1.0}, {}, {"policy": "random"}, {"cache": "prefix"}])
def test_guidance_that_overflows_is_refused_by_its_name(settings):
    given = DecodeSpec.build("llada", gen_length=8, block_length=4, cfg_scale=1e38, **settings)
    with pytest.raises(UsageError, match=r"'llada'(.|\n)*cfg_scale = 1e\+38(.|\n)*smaller cfg_scale"):
        decode(tiny("llada"), prompts(), given)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("policy", ["quota", "random", "threshold", "entropy", "origin"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_logits_that_are_no_numbers_are_refused(bad, policy, temperature):
    family = "dream" if policy == "origin" else "llada"
    network = table_network([0.0, 1.0, bad, 0.5, -1.0], family)
    threshold = {"threshold": 0.5} if policy == "threshold" else {}
    given = DecodeSpec.build(family, gen_length=4, policy=policy, temperature=temperature, **threshold)
    seen = []
    with pytest.raises(DataError, match=rf"'{family}'(.|\n)*NaN or infinity(.|\n)*weight files"):
        decode(network, [[1, 2]], given, record=RecordOptions(watch=seen.append))
    assert len(seen) <= 1, "refused after the first pass of the block"


def test_float16_names_its_remedy():
    network = table_network([0.0, torch.nan, 0.0])
    with pytest.raises(DataError, match="bfloat16"):
        decode(network, [[1]], DecodeSpec.build("llada", gen_length=2, dtype="float16"))


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("llada", {"eos_rule": "logits_eos_inf"}),
        ("llada", {"eos_rule": "confidence_eos_eot_inf"}),
        ("dream", {"top_k": 1}),
        ("dream", {"top_p": 1e-6, "temperature": 0.5}),
        ("llada", {"top_k": 1, "temperature": 0.5, "policy": "entropy"}),
    ],
)
def test_barred_values_are_not_mistaken_for_damage(family, settings):
    row = [0.0, 9.0, -torch.inf, 0.5, 3.0]
    network = table_network(row, family, eos_id=1, eot_id=2)
    result = decode(network, [[3, 3]], DecodeSpec.build(family, gen_length=4, **settings))[0]
    assert result.response == [3 if settings.get("eos_rule") == "logits_eos_inf" else 1] * 4


@pytest.mark.parametrize("temperature", [1e-30, 1e-31, 1e-36, 1e-38, 1e-40, 5e-324])
@pytest.mark.parametrize("policy", ["quota", "random", "threshold"])
def test_the_smallest_temperatures_are_greedy(temperature, policy):
    settings = {"gen_length": 8, "policy": policy} | ({"threshold": 0.5} if policy == "threshold" else {})
    greedy = decode(tiny("llada"), prompts(), DecodeSpec.build("llada", **settings))
    cold = decode(tiny("llada"), prompts(), DecodeSpec.build("llada", temperature=temperature, **settings))
    assert [(r.response, r.step_map) for r in cold] == [(r.response, r.step_map) for r in greedy]


def test_dream_at_the_smallest_temperatures_proposes_what_it_does_at_small_ones():
    settings = {"gen_length": 8, "policy": "random", "top_p": 0.9}
    small, smallest = (
        decode(tiny("dream"), prompts(), DecodeSpec.build("dream", temperature=value, **settings))
        for value in (1e-6, 1e-40)
    )
    assert [r.response for r in small] == [r.response for r in smallest]


@pytest.mark.parametrize("alg_temp", [1e-36, 1e-38, 1e-40, 5e-324])
@pytest.mark.parametrize("policy", ["quota", "margin", "entropy"])
def test_the_smallest_position_temperatures_keep_the_ranking(alg_temp, policy):
    plain, cold = (
        decode(tiny("dream"), prompts(), DecodeSpec.build("dream", gen_length=16, steps=8, policy=policy, **more))
        for more in ({}, {"alg_temp": alg_temp})
    )
    assert [(r.response, r.step_map) for r in plain] == [(r.response, r.step_map) for r in cold]


def test_position_temperature_zero_in_the_limit_prefers_the_higher_score():
    spec = DecodeSpec.build("dream", gen_length=4, policy="quota", alg_temp=1e-40)
    score = torch.tensor([[0.3, 0.5, 0.500001, 0.1]])
    step = Step(
        score_RM=score,
        tokens_RM=torch.zeros(1, 4, dtype=torch.long),
        live_RM=torch.ones(1, 4, dtype=torch.bool),
        masks=[4],
        due=[1],
        index=0,
        steps=4,
        fraction=0.25,
        uniform_RM=torch.tensor([[0.999, 0.999, 1e-9, 0.5]], dtype=torch.float64),
    )
    assert POLICIES.get("quota")(spec).select(step).tolist() == [[False, False, True, False]]


def test_a_draw_beyond_the_mass_is_the_last_value_that_has_some():
    logits = torch.tensor([[0.0, 0.0, 0.0, -torch.inf], [0.0, -torch.inf, -torch.inf, -torch.inf]])
    whole = torch.ones(2, dtype=torch.float64)
    assert draw(logits, whole).tolist() == [2, 0]
    assert draw(logits, whole - 2**-53).tolist() == [2, 0]
    assert draw(logits, 0 * whole).tolist() == [0, 0]


def propose(row, family: str, **settings):
    network = table_network(row, family, eos_id=1, eot_id=2)
    spec = DecodeSpec.build(family, gen_length=4, block_length=4, **settings)
    denoiser = SimpleNamespace(spec=spec, network=network, logits=lambda hidden, free: hidden.clone())
    sampler = ValueSampler(denoiser, "confidence")
    draws = torch.tensor([0.5], dtype=torch.float64) if sampler.draws else None
    tokens, scores = sampler.propose(torch.tensor([row]), None, draws)
    sampler.check()
    return tokens.tolist(), scores.tolist()


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("dream", {"top_k": 1}),
        ("dream", {"top_p": 1e-6}),
        ("dream", {"top_p": 1e-6, "temperature": 0.7}),
        ("sdar", {"top_k": 1, "temperature": 0.7, "parity": ["truncated_confidence"]}),
        ("sdar", {"top_p": 1e-6, "temperature": 0.7, "parity": ["truncated_confidence"]}),
        ("dream", {}),
    ],
)
@pytest.mark.parametrize("end", [1, 2])
def test_end_tokens_rank_last_also_when_filters_leave_nothing_else(family, settings, end):
    row = [0.0, 0.0, 0.0, 1.0, -9.0]
    row[end] = 40.0
    tokens, scores = propose(row, family, eos_rule="confidence_eos_eot_inf", **settings)
    assert (tokens, scores) == ([end], [0.0])


def test_end_tokens_wait_for_every_other_position_under_top_k():
    table = {2: [0.0, 9.0, 0.0, 0.0, 0.0], 3: [5.0, 0.0, 0.0, 0.0, 0.0], 4: [0.0, 0.0, 0.0, 3.0, 0.0]}
    network = ToyNetwork(constant(table, 5), 5, 4, family="dream", eos_id=1, eot_id=2)
    for policy, more in (("quota", {}), ("threshold", {"threshold": 0.9})):
        given = DecodeSpec.build(
            "dream", gen_length=3, top_k=1, eos_rule="confidence_eos_eot_inf", policy=policy, **more
        )
        assert decode(network, [[3, 3]], given)[0].step_map[0] == (2 if policy == "quota" else 1)


def test_eoser_stays_at_its_last_factor_when_refusals_prolong_the_block():
    given = DecodeSpec.build(
        "llada",
        gen_length=16,
        steps=2,
        policy="carry",
        threshold=1.0,
        eos_rule="eoser",
        eos_gamma=(1.0, 0.4),
    )
    budget, (block,) = Budget(given, causal=False), plan_blocks(given, SimpleNamespace(first_block=0, width=16))
    assert [budget.progress(block, index) for index in range(4)] == [0.0, 1.0, 1.0, 1.0]
    result = decode(tiny("llada"), prompts((3,)), given, record=RecordOptions())[0]
    scores = result.trace.score_SG
    assert result.nfe == 16 and float(scores[~scores.isnan()].min()) >= 0


def test_ascending_time_ends_at_one():
    given = DecodeSpec.build("llada", gen_length=16, steps=4, schedule="ascending", eos_rule="eoser")
    budget, (block,) = Budget(given, causal=False), plan_blocks(given, SimpleNamespace(first_block=0, width=16))
    values = [budget.progress(block, index) for index in range(6)]
    assert values == sorted(values) and values[:4] == [1 / 16, 3 / 16, 7 / 16, 15 / 16] and values[-1] == 1.0
