"""Noise: only answers are masked, rates are what they say, and no draw touches or depends on anything global."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dare_train.corruption import block_rates, mask_at_rates, sequence_rates
from dare_train.draws import GeneratorDraws, RowDraws, derive, seeded

MASK, EOS = 9, 2


def noised(seeds, length, prompt, **settings):
    ids_BT = torch.full((len(seeds), length), 5)
    maskable_BT = (torch.arange(length) >= prompt).expand(ids_BT.shape)
    draws = RowDraws(seeds)
    rate_BT = sequence_rates(ids_BT, draws, low=0.0, high=1.0)
    return mask_at_rates(ids_BT, maskable_BT, rate_BT, draws.rand(*ids_BT.shape), mask_id=MASK, **settings)


@given(seed=st.integers(0, 2**40), length=st.integers(1, 30), prompt=st.integers(0, 30))
def test_prompt_tokens_are_never_masked_and_masks_stand_where_they_are_said_to(seed, length, prompt):
    found = noised([seed], length, prompt)
    assert not found.masked_BT[:, :prompt].any()
    assert torch.equal(found.noisy_BT == MASK, found.masked_BT)
    assert ((found.rate_BT >= 0) & (found.rate_BT < 1)).all()


@given(seed=st.integers(0, 2**40), width=st.integers(8, 40))
def test_the_noise_of_a_row_depends_on_its_seed_only(seed, width):
    alone = noised([seed], 8, 0).masked_BT
    wider = noised([seed + 1, seed, seed + 2], width, 0).masked_BT
    assert torch.equal(alone[0], wider[1, :8])


def test_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    noised([1, 2, 3], 20, 4)
    GeneratorDraws(seeded(1)).rand(3)
    assert torch.equal(before, torch.get_rng_state())


def test_masking_rate_is_the_stated_rate():
    ids_BT = torch.zeros(200, 500, dtype=torch.long)
    draws = GeneratorDraws(seeded(0))
    rate_BT = sequence_rates(ids_BT, draws, low=0.3, high=0.8)
    found = mask_at_rates(ids_BT, ids_BT == 0, rate_BT, draws.rand(200, 500), mask_id=MASK)
    assert rate_BT.min() >= 0.3 and rate_BT.max() < 0.8
    error_B = found.masked_BT.float().mean(1) - rate_BT[:, 0]
    assert error_B.abs().max() < 0.11 and abs(float(error_B.mean())) < 0.004


def test_blocks_have_rates_of_their_own_on_a_grid_from_zero():
    rate_BT = block_rates(torch.zeros(3, 10), GeneratorDraws(seeded(0)), low=0.1, high=0.9, block_length=4)
    for start, end in ((0, 4), (4, 8), (8, 10)):
        assert (rate_BT[:, start:end] == rate_BT[:, start : start + 1]).all()
    assert len(rate_BT[:, ::4].unique()) == 9


@given(seed=st.integers(0, 2**40))
def test_a_tail_of_eos_is_masked_or_kept_as_one(seed):
    ids_BT = torch.tensor([[4, 4, EOS, 4, EOS, EOS, EOS]])
    maskable_BT = torch.tensor([[False, True, True, True, True, True, True]])
    draws = RowDraws([seed])
    rate_BT = sequence_rates(ids_BT, draws, low=0.0, high=1.0)
    uniform_BT = draws.rand(1, 7)
    joined = mask_at_rates(ids_BT, maskable_BT, rate_BT, uniform_BT, mask_id=MASK, tail_id=EOS).masked_BT
    apart = mask_at_rates(ids_BT, maskable_BT, rate_BT, uniform_BT, mask_id=MASK).masked_BT
    assert len(set(joined[0, 4:].tolist())) == 1 and joined[0, 4] == apart[0, 4]
    assert torch.equal(joined[0, :4], apart[0, :4])


def test_a_row_without_a_tail_is_untouched_by_the_tail_rule():
    ids_BT = torch.tensor([[4, EOS, 4]])
    uniform_BT = torch.tensor([[0.1, 0.1, 0.9]])
    found = mask_at_rates(ids_BT, ids_BT > 0, torch.full((1, 3), 0.5), uniform_BT, mask_id=MASK, tail_id=EOS)
    assert found.masked_BT.tolist() == [[True, True, False]]


def test_derived_seeds_differ_by_purpose_and_stay_in_range():
    seeds = [derive(seed, purpose, key) for seed in (0, 1) for purpose in ("noise", "order") for key in range(50)]
    assert len(set(seeds)) == len(seeds) and all(0 <= seed < 2**63 for seed in seeds)


def test_more_rows_than_streams_are_refused():
    with pytest.raises(ValueError, match="3 rows asked of 2 streams"):
        RowDraws([1, 2]).rand(3)
