"""What must hold for single algorithms, whatever the reference code does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.errors import DataError, UsageError
from dare_train.draws import GeneratorDraws, seeded
from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.corruptors import Complementary, CountAndComplement, CountMask, FullMask, RandomBlock
from dare_train.rl.credit import GroupAdvantage, StepAdvantage, step_scores, tree_advantages, tree_values
from dare_train.rl.replays import LeftToRight, ReplaySteps
from dare_train.rl.samples import completion
from dare_train.rl.surrogate import Clipped
from dare_train.rl.trajectory import Tree
from dare_train.rl.update import Updater
from dare_train.scorer import Scorer
from tests.rl.made import EOS, MASK, completions, gradient, moved, network_of, update_for

NET = network_of("masked")
LENGTHS = st.integers(1, 12)


def one(response=8, seed=0, region="all", facts=NET.config, ragged=False):
    return completion(completions(groups=1, size=2, seed=seed, ragged=ragged, response=response)[1], 1.0, region, facts)


def draws(seed):
    return GeneratorDraws(seeded(seed))


def masked(noise, sample):
    return noise.states[0 : len(noise.states)] == MASK


@given(length=LENGTHS, seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_complementary_masks_part_the_response(length, seed):
    sample = one(length, seed)
    for noise, part, rest in (
        (Complementary()(sample, draws(seed), NET.config), 1, 2),
        (CountAndComplement(2)(sample, draws(seed), NET.config), 2, 3),
    ):
        hidden = masked(noise, sample)
        assert torch.equal(hidden[part] ^ hidden[rest], sample.loss_T)
        assert not hidden[part:, : len(sample.trajectory.prompt)].any()
        places = [(int(r), int(c)) for r, c in zip(noise.row_X, noise.column_X, strict=True)]
        assert sum(row in (part, rest) for row, _ in places) == length, "each token is scored in exactly one of the two"


def test_masks_of_complements_weigh_inversely_and_empty_ones_nothing():
    sample = one(5)
    for seed in range(20):
        noise = CountAndComplement(1)(sample, draws(seed), NET.config)
        counts = torch.bincount(noise.row_X, minlength=2)
        assert counts.tolist() == [int(counts[0]), 5 - int(counts[0])]
        assert torch.isfinite(noise.weight_X).all()
        torch.testing.assert_close(noise.weight_X, 6.0 / counts[noise.row_X])


@given(seed=st.integers(0, 99), kind=st.sampled_from(["masked", "block"]))
@settings(max_examples=20, deadline=None)
def test_replay_scores_each_token_exactly_once_in_the_state_before_its_step(seed, kind):
    facts = network_of(kind).config
    region = "to_eos_block" if kind == "block" else "to_first_eos"
    for trajectory in completions(groups=1, size=4, seed=seed):
        sample = completion(trajectory, 1.0, region, facts)
        noise = ReplaySteps()(sample, draws(0), facts)
        assert sorted(noise.column_X.tolist()) == sample.loss_T.nonzero().flatten().tolist()
        start = len(trajectory.prompt)
        for row, column in zip(noise.row_X.tolist(), noise.column_X.tolist(), strict=True):
            state = noise.states[row : row + 1][0]
            assert int(state[column]) == MASK
            step = trajectory.step_map[column - start]
            block = facts.block_length or 10**6
            for other, when in enumerate(trajectory.step_map, start=start):
                if other // block == column // block:
                    assert (int(state[other]) == MASK) == (when >= step)


def test_replay_of_one_step_is_the_fully_masked_estimate_and_left_to_right_the_chain_rule():
    base = completions(groups=1, size=2, ragged=False)[1]
    at_once = completion(replace(base, step_map=(0,) * 8), 1.0, "all", NET.config)
    replayed = ReplaySteps()(at_once, draws(0), NET.config)
    full = FullMask(prompt_rate=0.0)(at_once, draws(0), NET.config)
    assert torch.equal(replayed.states, full.states) and torch.equal(replayed.column_X, full.column_X)
    in_order = completion(replace(base, step_map=tuple(range(8))), 1.0, "all", NET.config)
    steps, chain = ReplaySteps()(in_order, draws(0), NET.config), LeftToRight()(in_order, draws(0), NET.config)
    assert torch.equal(steps.states, chain.states[0:8]) and torch.equal(steps.column_X, chain.column_X)


def test_a_step_map_that_does_not_fit_is_refused():
    base = completions(groups=1, size=2, ragged=False)[1]
    for steps in ((0, 1), (-1,) * 8):
        with pytest.raises(DataError):
            ReplaySteps()(completion(replace(base, step_map=steps), 1.0, "all", NET.config), draws(0), NET.config)


def test_a_block_cut_by_eos_is_replayed_whole():
    facts = network_of("block").config
    base = completions(groups=1, size=2, ragged=False)[1]
    cut = replace(base, prompt=base.prompt[:4], response=(5, EOS, 7, 8, 9, 9, 9, 9))
    sample = completion(cut, 1.0, "to_eos_block", facts)
    assert sample.loss_T.nonzero().flatten().tolist() == [4, 5, 6, 7]
    assert completion(cut, 1.0, "to_first_eos", facts).loss_T.nonzero().flatten().tolist() == [4, 5]


def test_what_follows_eos_is_masked_and_never_scored():
    base = completions(groups=1, size=2, ragged=False)[1]
    sample = completion(replace(base, response=(5, 6, EOS, 7, 8, 9, 9, 9)), 1.0, "to_first_eos", NET.config)
    start = len(base.prompt)
    for corruptor in (FullMask(), CountMask(4), CountAndComplement(2), RandomBlock(2, 2)):
        noise = corruptor(sample, draws(1), NET.config)
        assert bool(masked(noise, sample)[:, start + 3 :].all())
        assert int(noise.column_X.max()) <= start + 2


def test_bgpo_starts_with_the_gradient_of_the_elbo_and_bounds_the_sequence_ratio():
    generator = seeded(0)
    objective, length = Clipped(10.0, 10.0, per_length=True, ratio="signed"), torch.full((16,), 5.0)
    for _ in range(200):
        change = torch.randn(16, generator=generator, dtype=torch.float64)
        for advantage in (1.5, -0.7):
            loss = objective(change * 5, torch.zeros(16), torch.full((16,), advantage), length).loss_U
            # Pessimistic: the mean over rows never claims more than the ratio of the mean estimate.
            assert float(-loss.mean()) <= advantage * math.exp(float(change.mean())) + 1e-9
    value = torch.zeros(1, requires_grad=True)
    for advantage in (2.0, -2.0):
        loss = Clipped(0.2, 0.2, per_length=True, ratio="signed")(value, None, torch.tensor([advantage]), length[:1])
        (slope,) = torch.autograd.grad(loss.loss_U.sum(), value)
        assert float(slope) == pytest.approx(-advantage / 5.0)


def test_far_apart_policies_stay_finite():
    """BGPO at d = -2 and EBPO at a log ratio of 300 (float32)."""
    far = torch.tensor([300.0, -300.0, -2.0, 88.9])
    for ratio in ("exp", "signed"):
        for advantage in (1.0, -1.0):
            value = far.clone().requires_grad_()
            found = Clipped(0.2, 0.2, ratio=ratio)(value, torch.zeros(4), torch.full((4,), advantage), torch.ones(4))
            assert bool(torch.isfinite(found.loss_U).all())
            found.loss_U.sum().backward()
            assert bool(torch.isfinite(value.grad).all())


def test_dual_clip_bounds_the_loss_of_bad_completions():
    value, old, bad = torch.tensor([3.0]), torch.zeros(1), torch.tensor([-1.0])
    assert float(Clipped()(value, old, bad, torch.ones(1)).loss_U) == pytest.approx(math.e**3)
    assert float(Clipped(dual_clip=3.0)(value, old, bad, torch.ones(1)).loss_U) == pytest.approx(3.0)


@given(rewards=st.lists(st.floats(-2, 2, width=32), min_size=4, max_size=4))
def test_siblings_advantages_add_up_to_nothing_and_the_root_is_the_mean(rewards):
    tree = Tree(parent=(-1, 0, 0, 1, 1, 2, 2), states_NR=torch.zeros(7, 1), leaf_rewards=tuple(rewards))
    advantages = tree_advantages(tree)
    for left in (1, 3, 5):
        assert advantages[left] + advantages[left + 1] == pytest.approx(0.0, abs=1e-6)
    assert tree_values(tree)[0] == pytest.approx(sum(rewards) / 4, abs=1e-6)
    equal = Tree(parent=tree.parent, states_NR=tree.states_NR, leaf_rewards=(rewards[0],) * 4)
    assert tree_advantages(equal) == pytest.approx([0.0] * 7, abs=1e-9)


def test_a_tree_of_depth_one_is_leave_one_out_and_an_only_child_has_nothing_to_beat():
    rewards = (1.0, 0.0, 0.25, 0.75)
    flat = Tree(parent=(-1, 0, 0, 0, 0), states_NR=torch.zeros(5, 1), leaf_rewards=rewards)
    assert tree_advantages(flat)[1:] == pytest.approx(GroupAdvantage("leave_one_out").of(rewards, [0] * 4))
    chain = Tree(parent=(-1, 0), states_NR=torch.zeros(2, 1), leaf_rewards=(0.5,))
    assert tree_advantages(chain) == [0.0, 0.5]
    with pytest.raises(DataError):
        Tree(parent=(-1, 2, 0), states_NR=torch.zeros(3, 1))
    with pytest.raises(DataError):
        tree_values(Tree(parent=(-1, 0), states_NR=torch.zeros(2, 1)))


@given(
    rewards=st.lists(st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), min_size=3, max_size=5),
    shift=st.floats(-2, 2, width=32),
)
def test_step_advantages_ignore_a_shift_and_constant_rewards_give_none(rewards, shift):
    part, groups = StepAdvantage(by_std=False), [0] * len(rewards)
    moved_rewards = [[reward + shift for reward in row] for row in rewards]
    torch.testing.assert_close(part.of(rewards, groups), part.of(moved_rewards, groups), rtol=0, atol=1e-5)
    assert float(StepAdvantage().of([[0.5] * 3] * 4, [0] * 4).abs().max()) == 0.0


def test_one_step_is_group_advantage_on_twice_the_reward_plus_one():
    assert step_scores(torch.tensor([0.3])).tolist() == pytest.approx([2 * 0.3 + 1])
    rewards = [0.1, 0.9, 0.4]
    found = StepAdvantage(delta=0.0).of([[reward] for reward in rewards], [0] * 3)[:, 0].tolist()
    assert found == pytest.approx(GroupAdvantage("mean", by_std=True, delta=0.0).of(rewards, [0] * 3))


def test_steps_of_unequal_number_are_compared_where_they_exist():
    found = StepAdvantage(by_std=False, top_k=2).of([[0.0, 1.0, 0.0], [1.0]], [0, 0])
    assert found.shape == (2, 3)
    assert found[:, 1:].tolist() == [[0.0, 0.0], [0.0, 0.0]], "nobody to be compared with"


def test_mdpo_without_confidence_has_no_gradient_and_weighs_by_what_is_masked():
    net = network_of("masked")
    update = update_for("mdpo", "masked", net, settings={"kl": {"coef": 1.0}})
    silent = [replace(t, confidence_KR=torch.zeros_like(t.confidence_KR)) for t in completions()]
    [batch] = update.prepare(silent, generator=seeded(0))
    anchor = update.values(moved(network_of("masked")), batch)
    _, found = gradient(update, net, batch.with_values(ref=anchor))
    assert float(found.abs().max()) == 0.0
    [batch] = update.prepare(completions(), generator=seeded(0))
    masked_S = torch.bincount(batch.units.sample_U)
    share_U = batch.policy_U / batch.kl_U
    torch.testing.assert_close(share_U, 8.0 / masked_S[batch.units.sample_U].float())


def test_spg_with_one_row_is_refused_and_zero_means_no_gradient_for_bad_ones():
    net, trajectories = network_of("masked"), completions()
    with pytest.raises(UsageError, match="no gradient tells them apart"):
        update_for("spg", "masked", net, settings={"corruptor": {"rows": 1}}).prepare(trajectories, generator=seeded(0))
    update = update_for("spg", "masked", net, settings={"reducer": {"negative": "zero"}})
    [batch] = update.prepare(trajectories, generator=seeded(0))
    logp_X = torch.cat([update._logps(net, batch, chunk) for chunk in batch.chunks]).detach().requires_grad_()
    update.algorithm.reducer.values(logp_X, batch.scored, batch.units).sum().backward()
    good_X = batch.scored.advantage_S[batch.scored.sample_X] > 0
    assert bool((logp_X.grad[~good_X] == 0).all()) and bool((logp_X.grad[good_X] != 0).all())


def test_distillation_pulls_towards_better_siblings_and_grows_with_progress():
    net, base = network_of("masked"), completions(groups=1, size=2)[0]
    states_NR = torch.stack([torch.full((8,), MASK), *torch.randint(3, 30, (4, 8), generator=seeded(1))])
    leaves = Tree(parent=(-1, 0, 0, 0, 0), states_NR=states_NR, leaf_rewards=(1.0, 0.8, 0.1, 0.0))
    update = update_for("dtreerpo", "masked", net, settings={"minibatches": 1})
    start, middle, end = (
        update.prepare([replace(base, tree=leaves)], generator=seeded(0), progress=progress)[0]
        for progress in (0.0, 0.5, 1.0)
    )
    assert float(start.distil_U.abs().max()) == 0.0
    assert 0 < float(middle.distil_U.sum()) < float(end.distil_U.sum())
    assert float(end.distil_U.sum()) == pytest.approx(3e-3, rel=1e-5), "weights of each position add up to one"
    assert float(end.distil_U[end.units.advantage_U <= 0].abs().max()) == 0.0
    assert middle.constant < 0, "tokens of two better children are less certain than one"


def test_justgrpo_ignores_prompts_without_signal():
    """Their share of a batch does not dilute the gradient of the others."""
    net = network_of("masked")
    update = update_for("justgrpo", "masked", net)
    useful = completions(groups=1)
    dull = [replace(t, group=9, reward=1.0, seed=t.seed + 50) for t in completions(groups=1, seed=4)]
    [alone] = update.prepare(useful, generator=seeded(0))
    [both] = update.prepare([*useful, *dull], generator=seeded(0))
    assert len(both.samples) == len(alone.samples)
    torch.testing.assert_close(gradient(update, net, both)[1], gradient(update, net, alone)[1])


def test_rows_left_to_right_are_built_when_they_are_asked_for():
    sample = one(300)
    noise = LeftToRight()(sample, draws(0), NET.config)
    stored = [value.numel() for value in (noise.states.place_M, noise.row_X, noise.column_X, noise.weight_X)]
    assert len(noise.states) == 300 and sum(stored) == 4 * 300, "no row is stored"
    start = len(sample.trajectory.prompt)
    assert noise.states[7:8][0].tolist() == [*sample.ids_T[: start + 7].tolist(), *[MASK] * 293]


def test_constants_are_replaced_by_name_and_wrong_ones_answered():
    d1 = find_algorithm("d1")
    changed = d1.with_settings({"objective": {"clip_low": 0, "dual_clip": 3}, "kl": {"coef": 1}})
    assert (changed.objective.clip_low, changed.objective.dual_clip, changed.kl.coef) == (0.0, 3.0, 1.0)
    assert d1.objective.clip_low == 0.5
    with pytest.raises(UsageError, match="did you mean 'clip_low'"):
        d1.with_settings({"objective": {"clip_lo": 0.1}})
    with pytest.raises(UsageError, match="another type"):
        d1.with_settings({"updates_per_rollout": "many"})


@pytest.mark.parametrize(
    ("name", "settings_of", "said"),
    [
        ("d1", {"loss_region": "al"}, "did you mean 'all'"),
        ("d1", {"updates_per_rollout": 0}, "out of range"),
        ("d1", {"advantage": {"baseline": "median"}}, "mean"),
        ("d1", {"corruptor": {"prompt_rate": 1.5}}, "0 to 1"),
        ("d1", {"objective": {"clip_low": -0.1}}, "0 or more"),
        ("d1", {"kl": {"kind": "k4"}}, "did you mean 'k"),
        ("bgpo", {"objective": {"ratio": "sign"}}, "did you mean 'signed'"),
        ("bgpo", {"corruptor": {"rows": 0}}, "1 or more"),
        ("espo", {"corruptor": {"pairs": -1}}, "1 or more"),
        ("espo", {"aggregator": {"inside": "means"}}, "did you mean 'mean'"),
        ("spg", {"reducer": {"negative": "ebo"}}, "did you mean"),
        ("mdpo", {"advantage": {"top_k": 0}}, "1 or more"),
        ("d1", {"kl": {"coef": -1.0}}, "0 or more"),
        ("d1", {"kl": {"coef": float("nan")}}, "no finite number"),
        ("d1", {"objective": {"clip_high": float("inf")}}, "no finite number"),
        ("d1", {"kl": None}, "another type"),
        ("d1", {"objective": None}, "another type"),
        ("d1", {"updates_per_rollout": True}, "another type"),
        ("d1", {"distil": 5}, "another type"),
        ("d1", {"rollout": 5}, "another type"),
        ("cj_grpo", {"recorder": "tree"}, "unknown constant"),
        ("cj_grpo", {"presets": {}}, "unknown constant"),
    ],
)
def test_constants_without_meaning_are_refused_at_once(name, settings_of, said):
    with pytest.raises(UsageError, match=said):
        find_algorithm(name).with_settings(settings_of)


def test_what_an_algorithm_need_not_have_is_switched_off_and_single_rollout_settings_are_replaced():
    trees = find_algorithm("dtreerpo")
    changed = trees.with_settings({"distil": None, "rollout": {"branch": 2}})
    assert changed.distil is None and changed.rollout == {**trees.rollout, "branch": 2}


def test_undefined_combinations_say_why():
    for name, kind, why in (
        ("ebpo", "masked", "clean copy"),
        ("mdpo", "block", "beyond the block"),
        ("justgrpo", "block", "blocks of one token"),
    ):
        with pytest.raises(UsageError, match=why):
            find_algorithm(name).resolve(network_of(kind).config)


def test_temperature_of_the_rollout_is_used_where_the_algorithm_says_so():
    net, trajectories = network_of("masked"), completions()
    found = {}
    for temperature in (1.0, 0.5):
        update = Updater(find_algorithm("justgrpo"), net.config, Scorer(), rollout_temperature=temperature)
        [batch] = update.prepare(trajectories, generator=seeded(0))
        found[temperature] = update.values(net, batch)
    rows, length = batch.rows(batch.chunks[0]), len(batch.samples[0].ids_T)
    column = int(batch.scored.column_X[0])
    logits = net(rows.noisy_rT[:1, :length]).detach()[0, column] / 0.5
    target = int(rows.target_rT[0, column])
    assert float(found[0.5][0]) == pytest.approx(float(logits.log_softmax(-1)[target]), rel=1e-9)
    assert float(found[1.0][0]) != pytest.approx(float(found[0.5][0]))
    with pytest.raises(UsageError, match="temperature of the rollout"):
        Updater(find_algorithm("mdpo"), net.config, Scorer(), rollout_temperature=0.0)
