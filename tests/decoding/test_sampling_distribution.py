"""Draws follow the distribution they claim; this stands in for the golden cases with a torch seed."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare

from dare_eval.decoding import RecordOptions, decode
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.decoding.toy import ToyNetwork, constant

ROWS = 3000
LIMIT = 1e-4  # every test draws from fixed seeds, so this is a margin, not a rate


def assert_fits(values: torch.Tensor, probs: torch.Tensor) -> None:
    counts = torch.bincount(values, minlength=len(probs)).double()
    expected = probs.double() / probs.double().sum()
    assert counts[expected == 0].sum() == 0
    kept = expected > 0
    assert chisquare(counts[kept].numpy(), (expected[kept] * len(values)).numpy()).pvalue > LIMIT


def one_token(logits, family="llada", **settings) -> torch.Tensor:
    """Sample one position many times, each row with a seed of its own."""
    network = ToyNetwork(constant({1: logits}, len(logits)), len(logits), len(logits) - 1, family=family)
    network.config.block_length = 1 if family in ("sdar", "llada2") else None
    spec = DecodeSpec.build(family, gen_length=1, block_length=1, early_stop="none", **settings)
    results = decode(network, [[0]] * ROWS, spec, row_seeds=range(ROWS))
    return torch.tensor([result.response[0] for result in results])


LOGITS = [1.0, 0.3, -0.5, 0.9, 0.0, 4.0]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_values_follow_the_tempered_softmax_without_the_mask(temperature):
    probs = (torch.tensor(LOGITS) / temperature).softmax(0)
    probs[-1] = 0
    assert_fits(one_token(LOGITS, temperature=temperature), probs)


def test_filters_restrict_the_draw():
    logits = [*sorted(LOGITS[:-1], reverse=True), -9.0]
    probs = torch.tensor(logits).softmax(0)
    assert_fits(one_token(logits, "sdar", temperature=1.0, top_k=2), torch.cat((probs[:2], torch.zeros(4))))
    mass = float(probs[0] + probs[1]) + 1e-3
    assert_fits(one_token(logits, "dream", temperature=1.0, top_p=mass), torch.cat((probs[:3], torch.zeros(3))))


def test_llada2_at_temperature_zero_is_greedy_unless_parity_is_asked_for():
    assert set(one_token(LOGITS, "llada2").tolist()) == {0}
    probs = torch.tensor(LOGITS).softmax(0)
    probs[-1] = 0
    assert_fits(one_token(LOGITS, "llada2", parity=["sample_at_zero_temperature"]), probs)


def first_positions(rows: int = ROWS, **settings) -> list:
    """Return the results of decoding four positions of known confidence, one per step."""
    table = {place: [2.0 - 0.5 * place, 0.0, -9.0] for place in range(1, 5)}
    network = ToyNetwork(constant(table, 3), 3, 2, family=settings.pop("family", "llada"))
    spec = DecodeSpec.build(network.config.family, gen_length=4, block_length=4, steps=4, **settings)
    return decode(network, [[0]] * rows, spec, row_seeds=range(rows))


def test_random_order_is_uniform():
    firsts = torch.tensor([result.step_map.index(0) for result in first_positions(policy="random")])
    assert_fits(firsts, torch.ones(4))


def test_alg_temp_draws_positions_from_the_softmax_of_their_scores():
    confidence = torch.tensor([[2.0 - 0.5 * place, 0.0, -9.0] for place in range(1, 5)]).softmax(-1).amax(-1)
    results = first_positions(family="dream", alg_temp=0.3)
    firsts = torch.tensor([result.step_map.index(0) for result in results])
    assert_fits(firsts, (confidence / 0.3).softmax(0))


def test_origin_reveals_each_mask_with_the_same_probability():
    results = first_positions(family="dream", policy="origin", parity=["zero_commit_steps"])
    revealed = torch.tensor([result.step_map for result in results])
    # Each position is revealed at a uniform step: 1/4 of the time each (up to eps), independently.
    for position in range(4):
        assert_fits(revealed[:, position], torch.ones(4))
    assert len({tuple(row.tolist()) for row in revealed}) > 150


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("llada", {"temperature": 0.7}),
        ("dream", {"policy": "entropy", "temperature": 0.2, "top_p": 0.95, "top_k": 50}),
        ("sdar", {"temperature": 1.0}),
    ],
)
def test_first_proposals_of_the_golden_models_follow_their_logits(family, settings):
    network, prompt = tiny(family), prompts((8,))[0]
    block = 4 if family == "sdar" else 16
    spec = DecodeSpec.build(family, gen_length=block, block_length=block, steps=1, early_stop="none", **settings)
    results = decode(network, [prompt] * 600, spec, row_seeds=range(600), record=RecordOptions())
    drawn = torch.stack([result.trace.proposal_SG[0] for result in results])
    ids = torch.tensor([prompt + [network.config.mask_id] * block])
    logits = network(ids, mask=None)[0].detach()
    logits = logits[7:-1] if network.config.shift else logits[8:]
    logits[:, network.config.mask_id] = -torch.inf
    scaled = logits / settings["temperature"]
    for place in (0, block - 1):
        probs = scaled[place].softmax(0)
        order = probs.argsort(descending=True)
        inside = probs[order].cumsum(0) - probs[order] <= settings.get("top_p", 1.0)
        keep = order[inside][: settings.get("top_k", 128)]
        kept = torch.zeros_like(probs).index_copy(0, keep, probs[keep])
        assert kept[drawn[:, place]].min() > 0
        # Values of small probability are pooled: chi-square wants counts of some size.
        common = keep[probs[keep] * 600 >= 5]
        pooled = torch.full((128,), len(common))
        pooled[common] = torch.arange(len(common))
        rest = (kept.sum() - kept[common].sum()).clamp_min(0)
        if rest * 600 < 1:
            continue
        assert_fits(pooled[drawn[:, place]], torch.cat((kept[common], rest[None])))


def test_equal_prompts_with_different_seeds_differ_and_equal_seeds_agree():
    spec = DecodeSpec.build("llada", gen_length=8, temperature=1.0)
    one, two, three = decode(tiny("llada"), [prompts()[0]] * 3, spec, row_seeds=[1, 2, 1])
    assert one.response != two.response and one.response == three.response
    again = decode(tiny("llada"), [prompts()[0]], spec)[0].response
    assert again == decode(tiny("llada"), [prompts()[1], prompts()[0]], spec)[1].response
