"""Golden likelihoods: explicit masks of the reference through our evaluator, within 1e-5 relative."""

from __future__ import annotations

import json

import pytest
import torch

from dare_eval.decoding.likelihood.evaluate import NoisyCopy, log_probs
from tests.golden.folders import golden_json, label, only_in_the_project
from tests.golden.test_sampling import network_of

FILES = golden_json("likelihood")
RELATIVE = 1e-5


def cases():
    found = []
    for path in FILES:
        for case in json.loads(path.read_text()):
            found.append(pytest.param(path.parent / case["model"], case, id=f"{label(path)}-{case['name']}"))
    return found


def weighted(network, ids, context, masked_rows, weights, cfg_scale=0.0) -> float:
    """Return the weighted sum of log-probabilities of the masked tokens of all rows."""
    mask_id = network.config.mask_id
    places = [tuple(i for i, token in enumerate(row) if token == mask_id) for row in masked_rows]
    copies = [NoisyCopy(tuple(ids), context, place) for place in places]
    values = log_probs(network, copies, block_length=None, cfg_scale=cfg_scale, batch_size=5)
    return float(sum(weight * value.sum() for weight, value in zip(weights, values, strict=True)))


def llada(case, network):
    ids, context = case["prompt"] + case["answer"], len(case["prompt"])
    assert case["mc_num"] == len(case["masked_batches"]) * case["batch_size"]
    total = 0.0
    for rows, ratios in zip(case["masked_batches"], case["mask_ratio"], strict=True):
        weights = [1 / ratio / len(rows) for ratio in ratios]
        total += weighted(network, ids, context, rows, weights, case["cfg_scale"])
    yield total / len(case["masked_batches"]), case["log_likelihood"]


def dream(case, network):
    ids, context = case["prompt"] + case["answer_incl_eos"], len(case["prompt"])
    rows, count = case["masked_batch"], len(case["masked_batch"])
    yield weighted(network, ids, context, rows, [1 / p / count for p in case["p_mask"]]), case["mc_log_likelihood"]
    places = [tuple(range(i, len(ids))) for i in range(context, len(ids))]
    values = log_probs(network, [NoisyCopy(tuple(ids), context, p) for p in places], block_length=None)
    yield float(sum(value[0] for value in values)), case["ar_ftb_log_likelihood"]


KINDS = {"log_likelihood": llada, "mc_log_likelihood": dream}


@pytest.mark.parametrize(("model", "case"), cases())
def test_likelihood_is_reproduced(model, case):
    kinds = [kind for key, kind in KINDS.items() if key in case]
    assert len(kinds) == 1, f"{case['name']}: this test does not know a case with the fields {sorted(case)}"
    torch.manual_seed(0)
    for ours, theirs in kinds[0](case, network_of(str(model))):
        assert ours == pytest.approx(theirs, rel=RELATIVE)


def test_there_are_cases():
    assert cases() or not only_in_the_project()
