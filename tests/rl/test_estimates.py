"""Every likelihood estimate against an exactly conditional model: all draws enumerated, expectation against log p."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dare_train.rl.batch import tabulate
from dare_train.rl.corruptors import AllBlocks, Complementary, CountAndComplement, CountMask, FullMask
from dare_train.rl.noise import Noise
from dare_train.rl.reducers import RowSum, RowToken, SequenceMean, SignedBound, TokenSum
from dare_train.rl.replays import LeftToRight, RecordedState, ReplaySteps
from dare_train.rl.samples import completion
from dare_train.rl.trajectory import Trajectory
from tests.golden.preference_checks import Oracle, all_draws
from tests.golden.recorded import RecordedDraws

STORED = Path(__file__).parents[1] / "golden" / "algorithms" / "property_oracle_v3l4.json"
ORACLE = Oracle(json.loads(STORED.read_text())["inputs"])
LENGTH, EXACT = ORACLE.length, ORACLE.exact()
MASK = ORACLE.size
FACTS = SimpleNamespace(family="llada", mask_id=MASK, pad_id=-1, eos_id=-1, shift=False, block_length=None)
BLOCKS = SimpleNamespace(**{**vars(FACTS), "family": "sdar", "block_length": 2})


def sample(facts=FACTS, steps=None, advantage=1.0):
    base = Trajectory(prompt=(), response=tuple(ORACLE.x), group=0, step_map=steps)
    return completion(base, advantage, "all", facts)


def values(reducer, noise, one, logp):
    """Return the values of the units of one sample; ``logp`` gives those of a row's scored positions."""
    scored = tabulate([one], [noise], None)
    units = reducer.units(scored)
    rows = [noise.states[row : row + 1][0] for row in range(len(noise.states))]
    places = [noise.column_X[noise.row_X == row].tolist() for row in range(len(rows))]
    logp_X = torch.tensor([v for state, cols in zip(rows, places, strict=True) for v in logp(state, cols)])
    return reducer.values(logp_X.double(), scored, units)


def masked_logp(state_T, columns):
    """log p of the tokens at ``columns`` given everything that is not masked."""
    hidden = state_T == MASK
    found = dict(zip(hidden.nonzero().flatten().tolist(), ORACLE.logp(hidden), strict=True))
    return [found[column] for column in columns]


def block_logp(state_T, columns):
    """The same for a block-causal model: earlier blocks are clean, later ones unseen."""
    size, found = BLOCKS.block_length, []
    for column in columns:
        start = column // size * size
        hidden = (state_T == MASK).clone()
        hidden[:start] = False
        hidden[start + size :] = True
        found += [dict(zip(hidden.nonzero().flatten().tolist(), ORACLE.logp(hidden), strict=True))[column]]
    return found


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


@pytest.mark.parametrize(("logp", "facts"), [(masked_logp, FACTS), (block_logp, BLOCKS)])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("reducer", [RowSum(), SequenceMean()])
def test_counted_masks_are_unbiased_also_block_by_block(logp, facts, rows, reducer):
    """An expectation of a mean over rows needs the draws of each row only: all rows take the same permutation."""
    found = []
    for start in range(1, LENGTH + 1):
        for order in itertools.permutations(range(LENGTH)):
            draws = RecordedDraws([{"value": start}, *[{"value": list(order)}] * rows])
            found.append(float(values(reducer, CountMask(rows)(sample(), draws, facts), sample(), logp).mean()))
    assert mean(found) == pytest.approx(EXACT, abs=1e-6)


@pytest.mark.parametrize(("logp", "facts"), [(masked_logp, FACTS), (block_logp, BLOCKS)])
def test_complements_are_unbiased_and_vary_less_than_single_masks(logp, facts):
    coupled, plain = [], []
    for draws in all_draws(0, LENGTH, 1):
        noise = CountAndComplement(1)(sample(), draws, facts)
        pair = values(RowSum(), noise, sample(), logp)
        coupled.append(float(pair.mean()))
        plain.append(float(pair[0]))
    assert mean(coupled) == pytest.approx(EXACT, abs=1e-6)
    assert torch.tensor(coupled).var() < torch.tensor(plain).var()


def test_masks_in_all_blocks_are_unbiased():
    """Levels change the number of masks at multiples of 1 / (block, blocks, rows): midpoints enumerate them."""
    cells, found = BLOCKS.block_length * 2 * 1, []
    orders = list(itertools.permutations(range(BLOCKS.block_length)))
    for level in range(cells):
        for chosen in itertools.product(orders, repeat=2):
            draws = RecordedDraws([{"value": (level + 0.5) / cells}, *({"value": list(order)} for order in chosen)])
            noise = AllBlocks(1)(sample(), draws, BLOCKS)
            assert all(bool((noise.column_X // 2 == block).any()) for block in range(2))
            found.append(float(values(SequenceMean(), noise, sample(), block_logp)[0]))
    assert mean(found) == pytest.approx(EXACT, abs=1e-6)


def test_left_to_right_and_every_order_of_single_steps_are_exact():
    chain = LeftToRight()(sample(), None, FACTS)
    assert float(values(RowToken(), chain, sample(), masked_logp).sum()) == pytest.approx(EXACT, abs=1e-6)
    for order in itertools.permutations(range(LENGTH)):
        one = sample(steps=order)
        noise = ReplaySteps()(one, None, FACTS)
        assert float(values(RowToken(), noise, one, masked_logp).sum()) == pytest.approx(EXACT, abs=1e-6)


def test_replay_by_blocks_is_exact_when_each_step_fixes_one_token_of_a_block():
    for order in itertools.product(itertools.permutations(range(2)), repeat=2):
        one = sample(BLOCKS, steps=tuple(itertools.chain(*order)))
        noise = ReplaySteps()(one, None, BLOCKS)
        assert len(noise.states) == 2, "both blocks at once"
        assert float(values(RowToken(), noise, one, block_logp).sum()) == pytest.approx(EXACT, abs=1e-6)


def test_the_fully_masked_estimate_is_the_sum_of_marginals():
    noise = FullMask(0.0)(sample(), RecordedDraws([{"value": []}]), FACTS)
    marginals = ORACLE.logp([True] * LENGTH)
    assert values(TokenSum(), noise, sample(), masked_logp).tolist() == pytest.approx(marginals, abs=1e-6)
    by_block = values(TokenSum(), noise, sample(BLOCKS), block_logp)
    first = ORACLE.logp([True] * LENGTH)[:2]
    second = ORACLE.logp([False, False, True, True])
    assert by_block.tolist() == pytest.approx([*first, *second], abs=1e-6)


@pytest.mark.parametrize("share", [0.25, 0.6])
def test_coupled_values_are_half_the_full_estimate_and_half_the_weighted_part(share):
    full = ORACLE.logp([True] * LENGTH)
    total, weight = torch.zeros(LENGTH, dtype=torch.float64), 0.0
    for hidden in itertools.product([True, False], repeat=LENGTH):
        uniform = [share / 2 if inside else (1 + share) / 2 for inside in hidden]
        noise = Complementary()(sample(), RecordedDraws([{"value": share}, {"value": uniform}]), FACTS)
        found = values(TokenSum(scale=0.5), noise, sample(), masked_logp)
        part = dict(zip([i for i in range(LENGTH) if hidden[i]], ORACLE.logp(list(hidden)), strict=True))
        rest_mask = [not inside for inside in hidden]
        rest = dict(zip([i for i in range(LENGTH) if rest_mask[i]], ORACLE.logp(rest_mask), strict=True))
        wanted = [0.5 * (full[i] + (part[i] / share if hidden[i] else rest[i] / (1 - share))) for i in range(LENGTH)]
        assert found.tolist() == pytest.approx(wanted, rel=1e-5)
        chance = share ** sum(hidden) * (1 - share) ** (LENGTH - sum(hidden))
        total, weight = total + chance * found, weight + chance
    assert weight == pytest.approx(1.0)


def test_transitions_score_what_a_child_fixed_in_the_state_of_its_parent():
    parent = torch.tensor([ORACLE.x[0], MASK, MASK, MASK])
    child = torch.tensor([ORACLE.x[0], ORACLE.x[1], MASK, ORACLE.x[3]])
    one = replace(sample(), state_T=parent, loss_T=child != MASK)
    noise = RecordedState()(one, None, FACTS)
    assert noise.column_X.tolist() == [1, 3]
    given = ORACLE.logp([False, True, True, True])
    found = values(RowToken(), noise, one, masked_logp).tolist()
    assert found == pytest.approx([given[0], given[2]], abs=1e-6)


def test_the_upper_bound_is_above_the_lower_one_in_expectation_and_grows_with_beta():
    """Enumerated: with finitely many draws the published normalisation may put it below."""
    masks = [torch.tensor(m) for m in itertools.product([True, False], repeat=LENGTH) if any(m)]
    chances = [1 / (LENGTH * len(list(itertools.combinations(range(LENGTH), int(m.sum()))))) for m in masks]

    def bound(beta):
        total = torch.zeros(LENGTH, dtype=torch.float64)
        for mask, chance in zip(masks, chances, strict=True):
            logp = torch.tensor(ORACLE.logp(mask.tolist()), dtype=torch.float64)
            total[mask] += chance * torch.exp(beta * logp) / (float(mask.sum()) / LENGTH)
        return float((total.log() / beta).sum())

    assert bound(1.0) + 1e-9 >= EXACT
    assert bound(1.0) <= bound(1.5) <= bound(2.0)


def test_the_upper_bound_of_very_unlikely_tokens_is_finite_and_has_a_gradient():
    hidden = torch.tensor([[True, True, False, False], [True, False, True, True]])
    noise = Noise.of(torch.tensor(ORACLE.x).expand(2, -1).masked_fill(hidden, MASK), hidden)
    scored = tabulate([sample(advantage=-1.0)], [noise], None)
    reducer = SignedBound("eubo", 1.5)
    logp_X = torch.full((5,), -300.0, requires_grad=True)
    value = reducer.values(logp_X, scored, reducer.units(scored))
    value.sum().backward()
    assert -301 < float(value.detach()) < -298
    assert bool((logp_X.grad > 0).all()) and float(logp_X.grad.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("beta", [1.0, 1.5])
def test_the_bounds_of_stored_rows_are_the_published_formulas(beta):
    """Two rows, written out by hand."""
    hidden = torch.tensor([[True, True, False, True], [False, True, True, False]])
    ids_T = torch.tensor(ORACLE.x)
    noise = Noise.of(ids_T.expand(2, -1).masked_fill(hidden, MASK), hidden)
    logp = [ORACLE.logp(row.tolist()) for row in hidden]
    lower = (sum(logp[0]) / 3 + sum(logp[1]) / 2) / 2
    p = [
        {c: torch.tensor(v).exp().item() for c, v in zip(row.nonzero().flatten().tolist(), found, strict=True)}
        for row, found in zip(hidden, logp, strict=True)
    ]
    share = [3 / LENGTH, 2 / LENGTH]
    tokens = [sum(p[r][c] ** beta / share[r] for r in range(2) if c in p[r]) / 2 for c in range(LENGTH)]
    upper = sum(torch.tensor(t).log().item() / beta for t in tokens) / LENGTH
    for negative, wanted in (("elbo", lower), ("eubo", upper), ("mix", 0.25 * upper + 0.75 * lower), ("zero", 0.0)):
        reducer = SignedBound(negative, beta, mix=0.25)
        found = float(values(reducer, noise, sample(advantage=-1.0), masked_logp))
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-9)
        assert float(values(reducer, noise, sample(advantage=1.0), masked_logp)) == pytest.approx(lower, rel=1e-5)
