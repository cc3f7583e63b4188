"""Every deterministic golden sampling case: tokens, number of forwards and commit maps equal to the reference.

Excepted: cases marked tie_dependent (the order is whatever the reference's top-k returns); seeded cases, whose
distribution tests/decoding/test_sampling_distribution.py covers. A case of a sampler or variant this test does not
know fails.
"""

from __future__ import annotations

import functools
import json

import pytest

from dare_eval.networks import load_network
from tests.golden.folders import golden_json, label, only_in_the_project
from tests.golden.sampling_cases import differences, is_random, run, spec_of

FILES = golden_json("sampling")
TOKENS = {"mask_id": -2, "eos_id": -3, "pad_id": -3, "eot_id": -4, "bos_id": -5}


@functools.lru_cache
def network_of(folder: str):
    with open(f"{folder}/config.json", encoding="utf-8") as file:  # noqa: PTH123
        raw = json.load(file)
    named = {f"{key.removesuffix('_id')}_token_id" for key in TOKENS}
    # Ids that a published config leaves out sit at the end of the tiny vocabularies. Only LLaDA's rules know an
    # end of turn; elsewhere the references end at EOS.
    known = TOKENS if raw["model_type"] == "llada" else {k: v for k, v in TOKENS.items() if k != "eot_id"}
    ids = {key: raw["vocab_size"] + place for key, place in known.items()}
    return load_network(folder, token_ids={} if named <= set(raw) else ids)


def cases(wanted):
    found = []
    for path in FILES:
        for case in json.loads(path.read_text())["cases"]:
            if wanted(case):
                found.append(pytest.param(path.parent / case["model"], case, id=f"{label(path)}-{case['name']}"))
    return found


def test_there_are_cases():
    assert cases(lambda case: True) or not only_in_the_project()


@pytest.mark.parametrize(("model", "case"), cases(lambda case: not is_random(case) and not case.get("tie_dependent")))
def test_case_is_reproduced(model, case):
    network = network_of(str(model))
    assert differences(case, network, run(case, network)) == []


@pytest.mark.parametrize(("model", "case"), cases(lambda case: case.get("reference_bug")))
def test_default_repairs_the_reference_bug(model, case):
    network = network_of(str(model))
    assert spec_of(case, network.config.family, reference=False).parity == ()
    assert differences(case, network, run(case, network, reference=False), reference=False) == []


@pytest.mark.parametrize(("model", "case"), cases(lambda case: is_random(case) or case.get("tie_dependent")))
def test_case_without_a_fixed_order_decodes_completely(model, case):
    network = network_of(str(model))
    for result in run(case, network):
        assert network.config.mask_id not in result.response
        assert min(result.step_map) >= 0
        assert result.nfe <= case["forward_calls"] or case["variant"] == "unpatched"
