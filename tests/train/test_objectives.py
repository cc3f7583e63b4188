"""Losses: their expectation, their normalisers, and what they must not depend on."""

from __future__ import annotations

import math

import pytest
import torch

from dare_eval.errors import UsageError
from dare_train.config import ObjectiveSettings
from dare_train.corruption import Corruption, mask_at_rates, rate_slope, scheduled, sequence_rates
from dare_train.draws import GeneratorDraws, seeded
from dare_train.objectives import cart_weights, denominator, token_weights, weighted_nll
from dare_train.presets import PRESETS, resolve_objective


def unit_losses(preset: str, *, rows: int, length: int, schedule: str = "linear") -> torch.Tensor:
    """Return the loss of each row when every token costs exactly 1."""
    settings = PRESETS[preset]
    draws = GeneratorDraws(seeded(0))
    ids_BT = torch.zeros(rows, length, dtype=torch.long)
    time_BT = sequence_rates(ids_BT, draws, low=settings["time_low"], high=settings["time_high"])
    rate_BT = scheduled(time_BT, schedule)
    noised = mask_at_rates(ids_BT, ids_BT == 0, rate_BT, draws.rand(rows, length), mask_id=1)
    found = []
    for row in range(rows):
        part = Corruption(noised.noisy_BT[row : row + 1], noised.masked_BT[row : row + 1], rate_BT[row : row + 1])
        maskable_BT = torch.ones(1, length, dtype=torch.bool)
        chosen = {name: settings[name] for name in ("weight", "normaliser")}
        weight_BT = token_weights(part, maskable_BT, **chosen, schedule=schedule)
        whole = float(denominator(part.masked_BT, maskable_BT, settings["normaliser"]))
        found.append(weighted_nll(torch.full((int(part.masked_BT.sum()),), -1.0), weight_BT[part.masked_BT], whole))
    return torch.stack(found)


@pytest.mark.parametrize(("schedule", "spread"), [("linear", 0.4), ("cosine", 0.6)])
def test_unit_cross_entropy_gives_a_loss_of_one(schedule, spread):
    losses = unit_losses("llada", rows=4000, length=256, schedule=schedule)
    assert float(losses.mean()) == pytest.approx(1.0, abs=0.02)
    assert float(losses.std()) < spread


def test_a_schedule_goes_from_nothing_to_everything_and_its_slope_is_its_derivative():
    time_T = torch.linspace(0, 1, 101, dtype=torch.float64).requires_grad_()
    for schedule in ("linear", "cosine"):
        rate_T = scheduled(time_T, schedule)
        assert rate_T[0].item() == 0.0 and rate_T[-1].item() == pytest.approx(1.0)
        (slope_T,) = torch.autograd.grad(rate_T.sum(), time_T)
        torch.testing.assert_close(rate_slope(rate_T, schedule).detach(), slope_T, rtol=0, atol=1e-7)
    assert bool((scheduled(time_T, "cosine") >= time_T).all()), "mostly masked rows are the more frequent ones"
    with pytest.raises(ValueError, match="unknown schedule"):
        scheduled(time_T, "cosin")


def test_dividing_by_masked_tokens_weighs_by_the_square_of_one_over_t():
    losses = unit_losses("llada_dare", rows=4000, length=256)
    assert 4.5 < float(losses.mean()) < 8.5, "the biased normaliser is kept by name because its loss is another one"


def test_a_fully_masked_row_costs_its_mean_cross_entropy():
    masked_BT = torch.ones(1, 5, dtype=torch.bool)
    noised = Corruption(torch.zeros(1, 5), masked_BT, torch.ones(1, 5))
    weight_BT = token_weights(noised, masked_BT, weight="inverse_rate", normaliser="sequence")
    logp_X = -torch.arange(1.0, 6.0)
    whole = float(denominator(masked_BT, masked_BT, "sequence"))
    assert float(weighted_nll(logp_X, weight_BT[masked_BT], whole)) == pytest.approx(3.0)


def test_sequence_normaliser_counts_rows_alike_and_batch_tokens_counts_tokens_alike():
    maskable_BT = torch.tensor([[True] * 8, [True] * 2 + [False] * 6])
    noised = Corruption(torch.zeros(2, 8), maskable_BT, torch.ones(2, 8))
    cost_X = torch.tensor([-1.0] * 8 + [-3.0] * 2)

    def loss(normaliser):
        weight_BT = token_weights(noised, maskable_BT, weight="inverse_rate", normaliser=normaliser)
        return float(
            weighted_nll(cost_X, weight_BT[maskable_BT], float(denominator(maskable_BT, maskable_BT, normaliser)))
        )

    assert loss("sequence") == pytest.approx((1 + 3) / 2)
    assert loss("batch_tokens") == pytest.approx((8 + 6) / 10)
    assert loss("rows") == pytest.approx((8 + 6) / 2)


def test_an_empty_selection_costs_nothing_and_has_a_gradient():
    logp_X = torch.zeros(0, requires_grad=True)
    loss = weighted_nll(logp_X, torch.zeros(0), 0.0)
    loss.backward()
    assert float(loss.detach()) == 0.0 and logp_X.grad is not None


def test_cart_prefers_tokens_near_visible_context_and_ignores_padding():
    masked_BT = torch.tensor([[False, True, True, True, True, True, False]])
    weight_BT = cart_weights(masked_BT, 0.3)
    assert weight_BT[0, 1] > weight_BT[0, 2] > weight_BT[0, 3] and weight_BT[0, 0] == 0
    padded = cart_weights(masked_BT, 0.3, torch.tensor([[True] * 6 + [False]]))
    assert torch.equal(padded[:, :6], cart_weights(masked_BT[:, :6], 0.3))
    assert not cart_weights(torch.ones(1, 4, dtype=torch.bool), 0.3).any()


@pytest.mark.parametrize(
    ("family", "preset"), [("llada", "llada"), ("dream", "dream"), ("sdar", "sdar"), ("llada2", "llada2")]
)
def test_a_family_brings_its_preset(family, preset):
    block = 4 if preset in ("sdar", "llada2") else None
    found = resolve_objective(ObjectiveSettings(), family, block)
    assert found.preset == preset and found.block_length == block
    assert None not in (found.time_low, found.time_high, found.weight, found.normaliser)


def test_set_values_win_over_the_preset():
    found = resolve_objective(ObjectiveSettings(preset="dream", time_low=0.1, weight="uniform"), "dream", None)
    assert (found.time_low, found.weight, found.normaliser) == (0.1, "uniform", "batch_tokens")


@pytest.mark.parametrize(
    ("settings", "block", "part"),
    [
        ({"preset": "lada"}, None, "did you mean 'llada'"),
        ({"preset": "sdar"}, None, "does not fit"),
        ({"preset": "llada"}, 4, "does not fit"),
        ({"preset": "sdar", "block_length": 8}, 4, "block length that the network attends with"),
        ({"time_per": "block"}, None, "needs a block objective"),
        ({"time_low": 0.9, "time_high": 0.5}, None, "must be below"),
    ],
)
def test_an_objective_that_does_not_fit_is_refused(settings, block, part):
    with pytest.raises(UsageError, match=part):
        resolve_objective(ObjectiveSettings(**settings), "sdar" if block else "llada", block)


def test_log_of_uniform_model():
    """C157: uniform over 10 tokens, 2 of 4 answer tokens masked at rate 0.5: sum of CE / p over the answer length."""
    masked_BT = torch.tensor([[False, True, False, True]])
    noised = Corruption(torch.zeros(1, 4), masked_BT, torch.full((1, 4), 0.5))
    maskable_BT = torch.ones(1, 4, dtype=torch.bool)
    weight_BT = token_weights(noised, maskable_BT, weight="inverse_rate", normaliser="sequence")
    loss = weighted_nll(torch.full((2,), -math.log(10)), weight_BT[masked_BT], 1.0)
    assert float(loss) == pytest.approx(2.302585, abs=1e-6)
