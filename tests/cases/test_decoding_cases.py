"""Cases of the categories decoding and likelihood.

Generic, so that further lines pass when dropped in: decoding:transfer_schedule, decoding:threshold_decode,
decoding:decode_text. Scenarios, each with a test that carries its id: C129, C130, C132, C134, C135, C140, C142 and
C144, C146, C147, C149.
"""

from __future__ import annotations

import math

import pytest
import torch

from dare_eval.decoding import LikelihoodOptions, decode, elbo, warn_generation_only
from dare_eval.decoding.results import trim
from dare_eval.decoding.schedule import Budget, plan_blocks
from dare_eval.spec import DecodeSpec
from tests.cases.case_lines import ids, lines
from tests.decoding.conftest import prompts, tiny
from tests.decoding.toy import ToyNetwork, constant, uniform

CASES = {case["id"]: case for case in lines("decoding", "likelihood")}


def scenario(name: str):
    """Return the case of an id; the test is skipped where the folders under test do not hold it."""
    if name not in CASES:
        pytest.skip(f"{name} is not among the case lines of DARE_CASES")
    return CASES[name]


def check_transfer_schedule(given, expected):
    masks, steps = given["mask_counts"], given["steps"]
    spec = DecodeSpec.build("llada", gen_length=max(masks), block_length=max(masks), steps=steps)
    budget, left, found = Budget(spec, causal=False), list(masks), []
    (block,) = plan_blocks(spec, _Grid(max(masks)))
    for index in range(steps):
        due = budget.due(block, index, left, masks)
        left = [before - count for before, count in zip(left, due, strict=True)]
        found.append(due)
    assert [list(row) for row in zip(*found, strict=True)] == expected["schedule"]


class _Grid:
    """What ``plan_blocks`` needs of a canvas."""

    first_block, causal = 0, False

    def __init__(self, width: int) -> None:
        self.width = width


def check_threshold_decode(given, expected):
    confidences = given["confidences"]
    # Value 0 has the stated confidence, the rest is spread over values that are never the likeliest.
    table = {place + 1: _logits_for(value) for place, value in enumerate(confidences)}
    network = ToyNetwork(constant(table, OTHERS + 2), OTHERS + 2, OTHERS + 1)
    count = len(confidences)
    spec = DecodeSpec.build(
        "llada", gen_length=count, block_length=count, policy="threshold", threshold=given["threshold"]
    )
    result = decode(network, [[0]], spec)[0]
    found = [[p for p, at in enumerate(result.step_map) if at == step] for step in range(result.nfe)]
    assert found == expected["unmasked_per_step"]
    assert result.nfe == expected["nfe"]


OTHERS = 2000


def _logits_for(confidence: float) -> list[float]:
    # Raised by less than any two confidences of a case differ, so that rounding does not fall below the threshold.
    confidence = min(confidence + 1e-6, 1 - 1e-6)
    return [math.log(confidence), *[math.log((1 - confidence) / OTHERS)] * OTHERS, -torch.inf]


def check_decode_text(given, expected):
    kept, _ = trim(given["ids"], "EOS", given.get("stop_ids", ()), len(given["ids"]))
    assert kept == expected["kept_ids"]


OPERATIONS = {
    "transfer_schedule": check_transfer_schedule,
    "threshold_decode": check_threshold_decode,
    "decode_text": check_decode_text,
}
GENERIC = [case for case in CASES.values() if case["input"].get("op") in OPERATIONS]


@pytest.mark.parametrize("case", GENERIC, ids=ids(GENERIC))
def test_decoding_operation(case):
    OPERATIONS[case["input"]["op"]](case["input"], case["expected"])


@pytest.mark.parametrize("name", ["C129", "C130"])
def test_suppressed_eos_orders_but_does_not_change_tokens(name):
    case = scenario(name)
    inf = -torch.inf
    network = ToyNetwork(constant({1: [0.0, 0.0, 5.0, inf], 2: [2.0, 0.0, 0.0, inf]}, 4), 4, 3, eos_id=2)
    spec = DecodeSpec.build(
        "llada",
        gen_length=2,
        steps=2,
        temperature=case["input"]["temperature"],
        eos_rule="confidence_eos_eot_inf" if case["input"]["eos_confidence_suppressed"] else "none",
    )
    result = decode(network, [[0]], spec)[0]
    assert result.response == case["expected"]["output"]
    order = sorted(range(2), key=result.step_map.__getitem__)
    assert [position + 1 for position in order] == case["expected"]["unmask_order"]


def test_c132_padding_is_neither_attended_to_nor_counted():
    given = scenario("C132")["input"]
    spec = DecodeSpec.build("llada", gen_length=given["gen_length"], block_length=given["block_length"])
    batch = prompts(tuple(given["prompts_len"]))
    together = decode(tiny("llada"), batch, spec)
    alone = [decode(tiny("llada"), [prompt], spec)[0] for prompt in batch]
    assert [(r.response, r.step_map, r.nfe) for r in together] == [(r.response, r.step_map, r.nfe) for r in alone]


def test_c134_a_mask_inside_the_prompt_stays():
    given = scenario("C134")["input"]
    prompt = [0, 3, 1]
    network = ToyNetwork(uniform(4, mask_id=3), 4, 3)
    spec = DecodeSpec.build("llada", **{key: given[key] for key in ("gen_length", "block_length", "steps")})
    result = decode(network, [prompt], spec)[0]
    assert 3 not in result.response and len(result.response) == given["gen_length"]
    assert sorted(result.step_map) == list(range(given["steps"]))


def test_c135_a_shifted_network_is_read_one_position_earlier():
    expected = scenario("C135")["expected"]

    def logits(ids_BT, positions_BT):
        return torch.nn.functional.one_hot((positions_BT + 1) % 10, 11).float() * 9

    network = ToyNetwork(logits, 11, 10, shift=True, family="dream")
    result = decode(network, [[0, 1]], DecodeSpec.build("dream", gen_length=3))[0]
    assert result.response == expected["output"]


def test_c140_a_finished_row_neither_stops_nor_alters_the_others():
    expected = scenario("C140")["expected"]

    def logits(ids_BT, positions_BT):
        out_BTV = torch.zeros(*ids_BT.shape, 6)
        out_BTV[..., 3] = 1.0
        # EOS (4) at the second response token of a prompt that begins with 1, at the fifth of one that begins with 2.
        begins_BT = (ids_BT == 1).any(-1, keepdim=True), (ids_BT == 2).any(-1, keepdim=True)
        out_BTV[..., 4] = 5.0 * ((begins_BT[0] & (positions_BT == 2)) | (begins_BT[1] & (positions_BT == 5)))
        return out_BTV

    network = ToyNetwork(logits, 6, 5, eos_id=4)
    spec = DecodeSpec.build("llada", gen_length=8, block_length=2, early_stop="block")
    first, second = decode(network, [[1], [2]], spec)
    alone = decode(network, [[1]], spec)[0]
    assert sum(count > 0 for count in second.nfe_by_block) == expected["row_2_blocks_decoded"]
    assert ((first.response, first.nfe) == (alone.response, alone.nfe)) is expected["row_1_equals_single_run"]
    assert first.nfe < second.nfe


def test_c142_a_stored_block_holds_its_final_tokens():
    given = scenario("C142")["input"]
    length = given["block_length"] * given["blocks"]
    outputs = []
    for cache in ("none", "block"):
        spec = DecodeSpec.build(
            "sdar", gen_length=length, block_length=given["block_length"], cache=cache, early_stop="none"
        )
        outputs.append([result.response for result in decode(tiny("sdar"), prompts((8, 5)), spec)])
    assert outputs[0] == outputs[1]


def test_c144_the_estimator_is_exact_on_a_uniform_model():
    case = scenario("C144")
    network = ToyNetwork(uniform(10), 10, 9)
    values = [
        elbo(
            network, [([1], [2] * case["input"]["answer_len"])], LikelihoodOptions(estimator="counts", mc_num=n, seed=s)
        )[0].loglik
        for n in case["input"]["mc_num"]
        for s in range(3)
    ]
    assert values == pytest.approx([case["expected"]["loglik"]] * len(values), abs=1e-5)


def test_c146_padding_does_not_change_the_score():
    scenario("C146")
    context, answer = prompts((6, 9))
    pairs = [(context, answer[:3]), (context, answer)]
    together = elbo(tiny("llada"), pairs, LikelihoodOptions(mc_num=16))
    alone = [elbo(tiny("llada"), [pair], LikelihoodOptions(mc_num=16))[0] for pair in pairs]
    assert [r.loglik for r in together] == pytest.approx([r.loglik for r in alone], rel=1e-6)


def test_c147_an_empty_continuation():
    expected = scenario("C147")["expected"]["loglik"]
    assert elbo(tiny("llada"), [([1, 2], [])])[0].loglik == expected


def test_c149_generation_settings_are_flagged_on_a_likelihood_task():
    case = scenario("C149")
    with pytest.warns(UserWarning) as caught:
        warn_generation_only(case["input"]["model_args"])
    assert any(case["expected"]["warning_contains"] in str(warning.message) for warning in caught)
