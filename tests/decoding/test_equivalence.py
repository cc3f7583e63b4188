"""What must not change a row: the batch around it, an exact cache, a cache refreshed at every step, one big block."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from dare_eval.decoding import decode
from dare_eval.errors import UsageError
from dare_eval.networks import AttentionMask, DiffusionNetwork
from dare_eval.spec import POLICY_FIELDS, DecodeSpec, family_traits
from tests.decoding.conftest import prompts, tiny

FAMILIES = ("llada", "llada_moe", "dream", "sdar", "sdar_moe", "llada2")
BIDIRECTIONAL = ("llada", "llada_moe", "dream")
BLOCK_CAUSAL = ("sdar", "sdar_moe", "llada2")
BLOCK = {"llada": 8, "dream": 8, "sdar": 4, "llada2": 8, "llada_moe": 8, "sdar_moe": 4}
EXTRA = {
    "threshold": {"threshold": 0.5},
    "carry": {"threshold": 0.4},
    "suffix": {"threshold": 0.4},
    "dynamic": {"threshold": 0.4},
    "eb": {"threshold": 1.5},
    "factor": {"factor": 1.5},
    "frechet": {"factor": 1.5},
}
STEPPED = [policy for policy, fields in POLICY_FIELDS.items() if "steps" in fields]


def spec(family: str, policy: str = "quota", cache: str = "none", **settings) -> DecodeSpec:
    base = {"gen_length": 16, "block_length": BLOCK[family], "policy": policy, "cache": cache}
    if policy in STEPPED and "min_transfer" not in settings and "edit_threshold" not in settings:
        base["steps"] = 8
    return DecodeSpec.build(family, **{**base, **EXTRA.get(policy, {}), **settings})


def facts(result) -> tuple:
    return (result.response, result.tokens, result.step_map, result.nfe, result.nfe_by_block, result.edits, result.stop)


def combinations():
    for family in FAMILIES:
        for cache in family_traits(family).caches:
            if family in BIDIRECTIONAL and cache == "block":
                continue  # a bidirectional network has no exact block cache
            for policy in POLICY_FIELDS:
                if policy != "suffix" or (family in BIDIRECTIONAL and cache == "none"):
                    yield family, cache, policy


def assert_batch_is_harmless(family: str, given: DecodeSpec) -> tuple:
    network, batch, seeds = tiny(family), prompts(), [11, 12, 13, 14, 15]
    together = decode(network, batch, given, row_seeds=seeds)
    alone = [decode(network, [one], given, row_seeds=[seed])[0] for one, seed in zip(batch, seeds, strict=True)]
    assert [facts(r) for r in together] == [facts(r) for r in alone]
    return network, batch, seeds, together


@pytest.mark.parametrize(("family", "cache", "policy"), list(combinations()))
def test_batch_of_unequal_prompts_equals_single_runs(family, cache, policy):
    assert_batch_is_harmless(family, spec(family, policy, cache))


SPECIAL = {
    "llada-sampled": ("llada", {"temperature": 0.8}),
    "llada-guided": ("llada", {"cfg_scale": 1.0}),
    "llada-guided-prefix": ("llada", {"cfg_scale": 1.0, "cache": "prefix"}),
    "llada-eos-logits": ("llada", {"eos_rule": "logits_eos_inf"}),
    "llada-eos-confidence": ("llada", {"eos_rule": "confidence_eos_eot_inf", "temperature": 0.5}),
    "llada-eoser": ("llada", {"eos_rule": "eoser"}),
    "llada-ascending": ("llada", {"schedule": "ascending", "steps": 4}),
    "llada-stops": ("llada", {"early_stop": "prefix", "stop_ids": [44, 59], "policy": "threshold", "threshold": 0.4}),
    "llada-stops-dual": ("llada", {"early_stop": "block", "stop_ids": [44, 59, 9], "cache": "dual"}),
    "dream-published": ("dream", {"policy": "entropy", "temperature": 0.2, "top_p": 0.95, "top_k": 50}),
    "dream-alg-temp": ("dream", {"policy": "margin", "alg_temp": 0.5, "cache": "prefix"}),
    "dream-sampled-dual": ("dream", {"policy": "entropy", "temperature": 0.4, "cache": "dual"}),
    "sdar-sampled": ("sdar", {"temperature": 1.0, "top_k": 20, "top_p": 0.9, "cache": "block"}),
    "sdar-odd-length": ("sdar", {"gen_length": 17, "steps": 10, "policy": "sequential", "cache": "block"}),
    "sdar-stops": ("sdar", {"stop_ids": [7, 77, 13, 40], "cache": "block"}),
    "llada2-edits": ("llada2", {"policy": "dynamic", "threshold": 0.5, "edit_threshold": 0.3, "max_post_steps": 3}),
    "llada2-edits-block": (
        "llada2",
        {"policy": "dynamic", "threshold": 0.5, "edit_threshold": 0.3, "max_post_steps": 3, "cache": "block"},
    ),
    "llada2-stops-early-block": (
        "llada2",
        {"policy": "dynamic", "threshold": 0.3, "early_stop": "prefix", "stop_ids": [23, 25, 13, 54], "cache": "block"},
    ),
    "llada-idle-pass": (
        "llada",
        {"policy": "factor", "factor": 9.0, "cache": "dual", "parity": ["idle_cached_pass"]},
    ),
    "llada2-stops-early": (
        "llada2",
        {"policy": "dynamic", "threshold": 0.3, "early_stop": "prefix", "stop_ids": [23, 25]},
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_batch_is_harmless_with(name):
    family, settings = SPECIAL[name]
    given = spec(family, **settings)
    network, batch, seeds, together = assert_batch_is_harmless(family, given)
    halves = [decode(network, batch[part], given, row_seeds=seeds[part]) for part in (slice(2), slice(2, None))]
    assert [facts(r) for r in together] == [facts(r) for half in halves for r in half]


@pytest.mark.parametrize("cache", ["none", "block"])
@pytest.mark.parametrize("policy", ["quota", "random", "sequential", "dynamic", "origin"])
def test_overwriting_as_published_leaves_no_mask(policy, cache):
    # Five prompt tokens and 4 steps of 2: the last step of a block finds fewer masks than are due.
    given = spec("sdar", policy, cache, gen_length=17, steps=10, early_stop="none", parity=["overwrite_committed"])
    for result in decode(tiny("sdar"), prompts((5, 7, 3)), given):
        assert tiny("sdar").config.mask_id not in result.response


def exact_cache_combinations():
    for family in BLOCK_CAUSAL:
        for policy in POLICY_FIELDS:
            if policy != "suffix":
                yield family, policy


@pytest.mark.parametrize(("family", "policy"), list(exact_cache_combinations()))
def test_block_commit_cache_equals_no_cache(family, policy):
    network, batch = tiny(family), prompts((7, 12, 3))
    plain = decode(network, batch, spec(family, policy))
    cached = decode(network, batch, spec(family, policy, "block"))
    for one, two, prompt in zip(plain, cached, batch, strict=True):
        assert (one.response, one.tokens, one.stop) == (two.response, two.tokens, two.stop)
        # One forward stores the prompt's full blocks, one each finished block.
        stored = sum(1 for count in two.nfe_by_block if count)
        assert two.nfe == one.nfe + stored + (len(prompt) >= BLOCK[family])


def test_block_commit_cache_equals_no_cache_with_editing():
    settings = {"policy": "dynamic", "threshold": 0.5, "edit_threshold": 0.3, "max_post_steps": 4}
    batch = prompts((7, 12, 3))
    plain = decode(tiny("llada2"), batch, spec("llada2", **settings))
    cached = decode(tiny("llada2"), batch, spec("llada2", cache="block", **settings))
    assert any(result.edits for result in plain)
    assert [r.response for r in plain] == [r.response for r in cached]
    assert [[e[1:] for e in r.edits] for r in plain] == [[e[1:] for e in r.edits] for r in cached]


@pytest.mark.parametrize("policy", ["quota", "threshold", "sequential"])
def test_block_causal_network_in_llada_layout(policy):
    source = tiny("llada")
    network = DiffusionNetwork(dataclasses.replace(source.config, block_length=8))
    network.load_state_dict(source.state_dict())
    batch = prompts((7, 12, 3))
    plain, cached = (decode(network, batch, spec("llada", policy, cache)) for cache in ("none", "block"))
    assert [r.response for r in plain] == [r.response for r in cached]
    assert [len(r.response) for r in plain] == [17, 20, 21]  # up to the end of the last block on the absolute grid
    with pytest.raises(UsageError, match="block-causal"):
        decode(network, batch, spec("llada", policy, "dual"))


@pytest.mark.parametrize("cache", ["prefix", "dual"])
@pytest.mark.parametrize("policy", [policy for policy in POLICY_FIELDS if policy != "suffix"])
@pytest.mark.parametrize("family", BIDIRECTIONAL)
def test_cache_refreshed_at_every_step_equals_no_cache(family, policy, cache):
    batch, seeds = prompts((7, 9, 4)), [1, 2, 3]
    plain = decode(tiny(family), batch, spec(family, policy), row_seeds=seeds)
    cached = decode(tiny(family), batch, spec(family, policy, cache, refresh=1), row_seeds=seeds)
    assert [facts(r) for r in plain] == [facts(r) for r in cached]


@pytest.mark.parametrize("cache", ["prefix", "dual"])
@pytest.mark.parametrize("policy", ["quota", "threshold", "origin"])
@pytest.mark.parametrize("family", BIDIRECTIONAL)
def test_cache_refreshed_at_every_step_equals_no_cache_in_one_block(family, policy, cache):
    batch, seeds = prompts((7, 9, 4)), [1, 2, 3]
    plain = decode(tiny(family), batch, spec(family, policy, block_length=16), row_seeds=seeds)
    cached = decode(tiny(family), batch, spec(family, policy, cache, block_length=16, refresh=1), row_seeds=seeds)
    assert [facts(r) for r in plain] == [facts(r) for r in cached]


@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
@pytest.mark.parametrize("block", [2, 4])
def test_an_empty_prompt_predicts_its_first_position_from_itself_in_a_batch_too(cache, block):
    # Left to right: after an empty prompt all positions look alike, so the order of a ranking would be rounding.
    given = spec("dream", "sequential", cache, gen_length=4, steps=4, block_length=block)
    alone = decode(tiny("dream"), [[]], given)[0]
    for batch in ([[], [5, 6]], [[], [5], [7, 8, 9]]):
        assert facts(decode(tiny("dream"), batch, given)[0]) == facts(alone)


def test_a_cache_refreshed_less_often_is_an_approximation():
    plain = decode(tiny("llada"), prompts(), spec("llada"))
    cached = decode(tiny("llada"), prompts(), spec("llada", cache="dual"))
    assert [r.response for r in plain] != [r.response for r in cached]


def full_diffusion(network, prompt: list[int], length: int, choose) -> list[int]:
    """Decode one prompt on the whole canvas, straight from the definition."""
    ids = torch.tensor([prompt + [network.config.mask_id] * length])
    step = 0
    while (left := ids[0] == network.config.mask_id).any():
        logits = network(ids, mask=AttentionMask())[0]
        if network.config.shift:
            logits = torch.cat((logits[:1], logits[:-1]))
        best = logits.index_fill(-1, torch.tensor([network.config.mask_id]), -torch.inf).argmax(-1)
        confidence = logits.double().softmax(-1)[torch.arange(len(best)), best].masked_fill(~left, -1)
        taken = choose(confidence, int(left.sum()), step)
        ids[0, taken] = best[taken]
        step += 1
    return ids[0, len(prompt) :].tolist()


CHOICES = {
    "quota": lambda c, left, step: c.topk(2).indices,
    "threshold": lambda c, left, step: ((c >= 0.5) | (c == c.max())).nonzero()[:, 0],
}


@pytest.mark.parametrize(
    ("family", "policy"),
    [(f, p) for f in FAMILIES for p in CHOICES if (f, p) != ("dream", "quota")],  # Dream's quota is rounded otherwise
)
def test_one_block_is_full_diffusion(family, policy):
    network, prompt = tiny(family), prompts((12,))[0]
    # A block-causal network sees everything when one block holds prompt and response.
    block = 32 if family_traits(family).absolute_grid else 20
    settings = {"steps": block // 2} if policy == "quota" else {}
    given = spec(family, policy, gen_length=20, block_length=block, early_stop="none", **settings)
    result = decode(network, [prompt], given)[0]
    assert result.response == full_diffusion(network, prompt, 20, CHOICES[policy])


def cooled():
    yield from (("llada", "quota", "prefix"), ("llada", "threshold", "dual"), ("dream", "random", "dual"))
    yield from (("sdar", "dynamic", "block"), ("llada2", "eb", "block"), ("sdar_moe", "quota", "block"))
    yield from (("llada_moe", "quota", "prefix"), ("llada_moe", "factor", "dual"))
    for family in FAMILIES:
        for policy in POLICY_FIELDS:
            if policy == "suffix" and family_traits(family).absolute_grid:
                continue
            # Dream ranks by the tempered softmax, as published, so only an order free of it has a limit.
            if family != "dream" or policy in ("random", "origin", "sequential"):
                yield family, policy, "none"


@pytest.mark.parametrize(("family", "policy", "cache"), list(cooled()))
def test_temperature_to_zero_is_greedy(family, policy, cache):
    batch, seeds = prompts((7, 12)), [5, 6]
    greedy = decode(tiny(family), batch, spec(family, policy, cache), row_seeds=seeds)
    cold = decode(tiny(family), batch, spec(family, policy, cache, temperature=1e-6), row_seeds=seeds)
    assert [facts(r) for r in greedy] == [facts(r) for r in cold]
