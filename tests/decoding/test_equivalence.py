"""What must not change a row: the batch around it, an exact cache, a cache refreshed at every step, one big block."""

from __future__ import annotations

import pytest

from dare_eval.decoding import decode
from dare_eval.spec import POLICY_FIELDS, DecodeSpec, family_traits
from tests.decoding.conftest import prompts, tiny

FAMILIES = ("llada", "dream", "sdar", "llada2")
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
            if family == "llada" and cache == "block":
                continue  # a bidirectional network has no exact block cache
            for policy in POLICY_FIELDS:
                if not (policy == "suffix" and cache != "none"):
                    yield family, cache, policy
    yield "llada_moe", "none", "quota"
    yield "sdar_moe", "block", "dynamic"


def assert_batch_is_harmless(family: str, given: DecodeSpec) -> None:
    network, batch, seeds = tiny(family), prompts(), [11, 12, 13, 14, 15]
    together = decode(network, batch, given, row_seeds=seeds)
    alone = [decode(network, [one], given, row_seeds=[seed])[0] for one, seed in zip(batch, seeds, strict=True)]
    assert [facts(r) for r in together] == [facts(r) for r in alone]
    halves = decode(network, batch[:2], given, row_seeds=seeds[:2]) + decode(
        network, batch[2:], given, row_seeds=seeds[2:]
    )
    assert [facts(r) for r in together] == [facts(r) for r in halves]


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
    "llada2-stops-early": (
        "llada2",
        {"policy": "dynamic", "threshold": 0.3, "early_stop": "prefix", "stop_ids": [23, 25]},
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_batch_is_harmless_with(name):
    family, settings = SPECIAL[name]
    settings = dict(settings)
    assert_batch_is_harmless(
        family, spec(family, settings.pop("policy", "quota"), settings.pop("cache", "none"), **settings)
    )
