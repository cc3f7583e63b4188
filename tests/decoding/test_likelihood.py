"""Likelihood estimators: exact where they must be, unbiased, batch-independent, sharing random numbers."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dare_eval.decoding import LikelihoodOptions, decode, elbo, warn_generation_only
from dare_eval.decoding.likelihood.plans import make_plan
from dare_eval.errors import UsageError
from dare_eval.networks import AttentionMask
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.decoding.toy import ToyNetwork, uniform

FAMILIES = ("llada", "dream", "sdar", "llada2")
BLOCK = {"sdar": 4, "llada2": 4}


def options(**kwargs) -> LikelihoodOptions:
    return LikelihoodOptions(**{"mc_num": 32, **kwargs})


def pairs(lengths=((7, 3), (5, 9), (12, 1), (3, 6))) -> list:
    texts = prompts(tuple(a + b for a, b in lengths), seed=3)
    return [(text[:a], text[a:]) for text, (a, b) in zip(texts, lengths, strict=True)]


@pytest.mark.parametrize("estimator", ["counts", "pseudo", "ar"])
@pytest.mark.parametrize("mc_num", [1, 8, 128])
def test_a_uniform_model_is_scored_exactly_for_every_draw(estimator, mc_num):
    network = ToyNetwork(uniform(10), 10, 9)
    results = [
        elbo(network, [([1], [2, 3, 4, 5])], options(mc_num=mc_num, estimator=estimator, seed=s))[0] for s in range(4)
    ]
    for result in results:
        assert result.loglik == pytest.approx(-4 * math.log(10), rel=1e-6)
        assert math.isnan(result.stderr) or result.stderr == pytest.approx(0, abs=1e-6)


def test_an_empty_continuation_has_likelihood_one():
    result = elbo(tiny("llada"), [([1, 2], [])], options())[0]
    assert (result.loglik, result.n_tokens, result.nfe) == (0.0, 0, 0)


@torch.no_grad()
def log_p(network, ids: list[int], masked: list[int], block: int | None = None) -> dict[int, float]:
    """Return log p of each masked token, straight from the definition."""
    noisy = torch.tensor([[network.config.mask_id if i in masked else t for i, t in enumerate(ids)]])
    mask = None if block is None else AttentionMask.block_causal(len(ids), block)
    logits = network(noisy, mask=mask)[0].double()
    if network.config.shift:
        logits = torch.cat((logits[:1], logits[:-1]))
    return {i: float(logits[i].log_softmax(-1)[ids[i]]) for i in masked}


def exact_counts(network, context: list[int], answer: list[int]) -> float:
    """Return the expectation of the counts estimator by enumerating all masks."""
    ids, n = context + answer, len(answer)
    total = 0.0
    for x in range(1, n + 1):
        subsets = list(itertools.combinations(range(n), x))
        for subset in subsets:
            total += sum(log_p(network, ids, [len(context) + i for i in subset]).values()) * n / x / len(subsets) / n
    return total


def test_counts_converge_to_their_expectation_and_say_how_far_they_are():
    network, (context, answer) = tiny("llada"), (prompts()[0], [10, 82, 33])
    expected = exact_counts(network, context, answer)
    assert elbo(network, [(context, answer)], options(mc_num=8192))[0].loglik == pytest.approx(expected, rel=0.02)
    scores = [elbo(network, [(context, answer)], options(mc_num=64, seed=seed))[0] for seed in range(60)]
    assert all(result.nfe <= 2**3 - 1 for result in scores)
    inside = sum(abs(result.loglik - expected) < 2.5 * result.stderr for result in scores)
    assert inside >= 50


def test_floor_rounding_is_uniform_and_legacy_is_not():
    share = {}
    for rounding in ("floor", "legacy"):
        counts = torch.zeros(5)
        for seed in range(400):
            plan = make_plan(
                "counts", torch.zeros(5, dtype=torch.long), options(mc_num=8, rounding=rounding, seed=seed), "g"
            )
            counts += torch.bincount(plan.mask_Sn.sum(-1) - 1, minlength=5)
            assert plan.mask_Sn.any(-1).all()
        share[rounding] = counts / counts.sum()
    assert (share["floor"] - 0.2).abs().max() < 0.01
    # Half steps are rounded to even, so some counts come up more often than others.
    assert (share["legacy"] - 0.2).abs().max() > 0.015


def test_legacy_counts_follow_the_published_formula():
    plan = make_plan("counts", torch.zeros(6, dtype=torch.long), options(mc_num=4, strata=4, rounding="legacy"), "g")
    counts = plan.mask_Sn.sum(-1).tolist()
    possible = []
    for k in range(1, 7):
        steps = torch.linspace(float(k), k + 3 * (6 / 4), steps=4)
        possible.append((((steps.round() - 1) % 6) + 1).int().tolist())
    assert counts in possible


def test_dream_masks_by_its_own_probabilities_and_never_the_closing_eos():
    draws = options(mc_num=32)
    plan = make_plan("bernoulli", torch.zeros(40, dtype=torch.long), draws, "g")
    level = 1 / (plan.weight_Sn[:, 0] * 32)
    assert level.min() >= 1e-3 and level.max() <= 1
    assert (level.sort().values.diff() - 0.999 / 32).abs().max() < 1e-9
    assert (plan.mask_Sn.double().mean(-1) - level).abs().max() < 0.3
    network, (context, answer) = tiny("dream"), pairs()[0]
    closed = elbo(network, [(context, answer)], options(mc_num=512))[0]
    opened = elbo(network, [(context, answer)], options(mc_num=512, append_eos=False))[0]
    assert closed.n_tokens == opened.n_tokens == len(answer)
    assert closed.loglik != pytest.approx(opened.loglik, rel=1e-3)


@pytest.mark.parametrize("family", ["sdar", "llada2"])
def test_blocks_are_scored_given_the_clean_blocks_before_them(family):
    network, context, answer = tiny(family), prompts((6,))[0], [10, 82, 33, 5, 77]
    ids = context + answer
    # With block 4 the answer covers columns 6-7, 8-10: masks of one block never hide another.
    expected = 0.0
    for columns in ([6, 7], [8, 9, 10]):
        n = len(columns)
        for x in range(1, n + 1):
            subsets = list(itertools.combinations(columns, x))
            for subset in subsets:
                expected += sum(log_p(network, ids, list(subset), 4).values()) * n / x / len(subsets) / n
    result = elbo(network, [(context, answer)], options(mc_num=8192, block_length=4))[0]
    assert result.loglik == pytest.approx(expected, abs=4 * result.stderr)
    assert result.stderr < 0.02 * abs(expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("estimator", ["pseudo", "ar"])
def test_exact_estimators_equal_their_definition(family, estimator):
    network, (context, answer), block = tiny(family), (prompts((5,))[0], [10, 82, 33, 5, 77]), BLOCK.get(family)
    ids = context + answer
    expected = 0.0
    for i in range(len(context), len(ids)):
        end = len(ids) if block is None else min(-(-(i + 1) // block) * block, len(ids))
        masked = [i] if estimator == "pseudo" else list(range(i, end))
        expected += log_p(network, ids, masked, block)[i]
    result = elbo(network, [(context, answer)], options(estimator=estimator, block_length=block))[0]
    assert result.loglik == pytest.approx(expected, rel=1e-5)
    assert result.stderr == 0.0
    assert result.nfe == (len(answer) if block is None else 3)  # blocks side by side: 3 and 2 tokens


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("estimator", ["auto", "pseudo", "ar"])
def test_padding_options_together_changes_nothing(family, estimator):
    given = options(estimator=estimator, block_length=BLOCK.get(family), batch_size=64)
    together = elbo(tiny(family), pairs(), given)
    alone = [elbo(tiny(family), [pair], given)[0] for pair in pairs()]
    for one, two in zip(together, alone, strict=True):
        assert one.loglik == pytest.approx(two.loglik, rel=1e-5, abs=1e-5)
        assert (one.n_tokens, one.nfe) == (two.n_tokens, two.nfe)


def test_options_of_an_item_share_their_random_numbers():
    block = torch.zeros(6, dtype=torch.long)
    first, second = (make_plan("counts", block, options(), "item") for _ in range(2))
    assert torch.equal(first.mask_Sn, second.mask_Sn)
    assert not torch.equal(first.mask_Sn, make_plan("counts", block, options(), "other").mask_Sn)
    # A longer option uses the same numbers for the positions both have: the noise levels agree.
    longer = make_plan("counts", torch.zeros(12, dtype=torch.long), options(), "item")
    shares = first.mask_Sn.double().mean(-1), longer.mask_Sn.double().mean(-1)
    assert (shares[0] - shares[1]).abs().max() <= 1 / 6
    network, context = tiny("llada"), prompts()[0]
    shared = elbo(network, [(context, [5, 9, 20, 4]), (context, [5, 9, 20, 7])], options())
    apart = elbo(network, [(context, [5, 9, 20, 4]), (context, [5, 9, 20, 7])], options(), groups=["a", "b"])
    assert shared[0].loglik != apart[0].loglik or shared[1].loglik != apart[1].loglik


def test_common_random_numbers_sharpen_the_difference_of_two_options():
    network, context = tiny("llada"), prompts()[0]
    one, two = [5, 9, 20, 4, 66, 30], [5, 9, 20, 4, 66, 31]
    shared, apart = [], []
    for seed in range(24):
        a, b = elbo(network, [(context, one), (context, two)], options(mc_num=8, seed=seed))
        c, d = elbo(network, [(context, one), (context, two)], options(mc_num=8, seed=seed), groups=["a", "b"])
        shared.append(a.loglik - b.loglik)
        apart.append(c.loglik - d.loglik)
    assert torch.tensor(shared).std() < torch.tensor(apart).std()


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_check_agrees_with_decoding(family):
    network, context, block = tiny(family), prompts((8,))[0], BLOCK.get(family)
    spec = DecodeSpec.build(family, gen_length=4, block_length=4, early_stop="none")
    greedy = decode(network, [context], spec)[0].response
    other = [*greedy[:-1], (greedy[-1] + 1) % 120]
    given = options(check_greedy=True, block_length=block, mc_num=8)
    yes, no, empty = elbo(network, [(context, greedy), (context, other), (context, [])], given)
    plain = elbo(network, [(context, greedy)], options(block_length=block, mc_num=8))[0]
    assert (yes.greedy, no.greedy, empty.greedy, plain.greedy) == (True, False, True, None)
    assert yes.nfe == plain.nfe + 4 and yes.loglik == pytest.approx(plain.loglik)


def test_guidance_changes_the_score_and_costs_no_extra_nfe():
    plain, guided = (elbo(tiny("llada"), pairs()[:1], options(cfg_scale=scale))[0] for scale in (0.0, 0.5))
    assert plain.loglik != guided.loglik and plain.nfe == guided.nfe


def test_what_cannot_work_is_refused():
    for bad, word in (
        ({"estimator": "count"}, "counts"),
        ({"mc_num": 10, "strata": 4}, "mc_num = 12"),
        ({"mc_num": 0}, "mc_num"),
        ({"rounding": "flor"}, "floor"),
        ({"mc_num": True}, "mc_num"),
        ({"cfg_scale": -1.0}, "cfg_scale"),
        ({"cfg_scale": "0.5"}, "cfg_scale"),
        ({"seed": "one"}, "seed"),
        ({"check_greedy": "yes"}, "check_greedy"),
    ):
        with pytest.raises(UsageError, match=word):
            LikelihoodOptions(**bad)
    with pytest.raises(UsageError, match="blocks"):
        elbo(tiny("sdar"), pairs(), options(estimator="counts"))
    with pytest.raises(UsageError, match="block-causal"):
        elbo(tiny("llada"), pairs(), options(estimator="blocks"))
    with pytest.raises(UsageError, match="256"):
        elbo(tiny("llada"), [([1] * 250, [2] * 20)], options())
    with pytest.raises(UsageError, match=r"256 tokens, one more for the EOS(.|\n)*at most 255"):
        elbo(tiny("llada"), [([1] * 250, [2] * 6)], options(append_eos=True))
    most = tiny("sdar").config.context_length
    with pytest.raises(UsageError, match=rf"{most} tokens\n(.|\n)*at most {most // 3 * 3}"):
        elbo(tiny("sdar"), [([1] * (most - 6), [2] * 6)], options(block_length=3, check_greedy=True))
    with pytest.raises(UsageError, match=r"row 1 (.|\n)*128(.|\n)*0 .. 127"):
        elbo(tiny("llada"), [([1], [2]), ([1], [128])], options())
    with pytest.raises(UsageError, match="groups"):
        elbo(tiny("llada"), pairs(), options(), groups=["a"])


def test_generation_settings_are_flagged():
    with pytest.warns(UserWarning, match="threshold has no effect"):
        assert warn_generation_only({"threshold": 0.2, "mc_num": 8}) == ["threshold has no effect on a likelihood task"]


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("estimator", None), ("estimator", {}), ("rounding", None), ("mc_num", None), ("mc_num", 8.0),
        ("batch_size", None), ("batch_size", True), ("seed", 0.0), ("seed", None), ("seed", -1), ("cfg_scale", None),
        ("cfg_scale", math.nan), ("cfg_scale", 10**400), ("check_greedy", None), ("check_greedy", 1),
        ("append_eos", 0), ("strata", 0), ("block_length", "4"),
    ],
)  # fmt: skip
def test_an_option_out_of_range_is_named_with_its_value(key, wrong):
    with pytest.raises(UsageError) as refused:
        LikelihoodOptions(**{key: wrong})
    assert key in refused.value.what and str(wrong) in refused.value.what and refused.value.allowed


def test_none_stands_for_the_networks_own_where_it_is_the_default():
    assert LikelihoodOptions(strata=None, block_length=None, append_eos=None) == LikelihoodOptions()
