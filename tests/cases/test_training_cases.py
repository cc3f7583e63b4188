"""Cases of training: C157 and C159 on their own numbers, and the category training/advantage, whose lines may grow."""

from __future__ import annotations

import math

import pytest
import torch

from dare_train.advantages import group_advantages
from dare_train.corruption import Corruption, mask_at_rates
from dare_train.objectives import denominator, token_weights, weighted_nll
from tests.cases.case_lines import ids, lines

LOSSES = [line for line in lines("training/loss") if line["id"] in ("C157", "C159")]
ADVANTAGES = lines("training/advantage")


def grouped(given):
    """Return rewards and group ids of the forms 'rewards' (one group) and 'two_groups' (or any number of them)."""
    groups = [given["rewards"]] if "rewards" in given else given["two_groups"]
    rewards = [float(reward) for group in groups for reward in group]
    return torch.tensor(rewards), torch.tensor([number for number, group in enumerate(groups) for _ in group])


@pytest.mark.parametrize("case", ADVANTAGES, ids=ids(ADVANTAGES))
def test_advantage(case):
    given, expected = case["input"], case["expected"]
    rewards, groups = grouped(given)
    kind = given["normalise"].split()[0]
    choices = {"none": {}, "group_std": {"by_std": True}, "loo": {"baseline": "leave_one_out"}}
    found = group_advantages(rewards, groups, **choices[kind])
    wanted = torch.tensor(expected["advantages"], dtype=torch.float32).flatten()
    torch.testing.assert_close(found, wanted, rtol=0, atol=expected.get("tol", 1e-5))
    assert torch.isfinite(found).all()


def check_uniform_model(given, expected):
    length, rate = given["answer_len"], given["p_mask"]
    masked_BT = torch.zeros(1, length, dtype=torch.bool)
    masked_BT[0, given["masked"]] = True
    noised = Corruption(torch.zeros(1, length), masked_BT, torch.full((1, length), rate))
    maskable_BT = torch.ones(1, length, dtype=torch.bool)
    weight_BT = token_weights(noised, maskable_BT, weight="inverse_rate", normaliser="sequence")
    logp_X = torch.full((len(given["masked"]),), -math.log(10))
    whole = float(denominator(masked_BT, maskable_BT, "sequence"))
    assert float(weighted_nll(logp_X, weight_BT[masked_BT], whole)) == pytest.approx(expected["loss"], abs=1e-6)


def check_prompt_is_spared(given, expected):
    ids_BT = torch.arange(5)[None]
    found = mask_at_rates(
        ids_BT, ids_BT >= 2, torch.ones(1, 5), torch.rand(1, 5, generator=torch.Generator()), mask_id=9
    )
    assert found.masked_BT[0].nonzero().flatten().tolist() == expected["masked_positions"]


CHECKS = {"C157": check_uniform_model, "C159": check_prompt_is_spared}


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
def test_loss(case):
    CHECKS[case["id"]](case["input"], case["expected"])
