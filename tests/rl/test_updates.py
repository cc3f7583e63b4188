"""What must hold for every algorithm on every network it is defined for."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dare_eval.errors import UsageError
from dare_train.draws import seeded
from dare_train.rl.algorithm import ALGORITHMS, algorithm_names, find_algorithm
from dare_train.rl.loss import Tally, unit_losses
from dare_train.rl.replays import LeftToRight, RecordedState, ReplaySteps
from tests.rl.made import (
    Part,
    assert_same,
    completions,
    defined,
    gradient,
    moved,
    network_of,
    update_for,
    variants,
)

SHIFTED = ("d1", "cj_grpo", "justgrpo", "espo")
"""The shift belongs to the scorer: one algorithm of each way to train rows is enough."""
EVERY = [(name, kind) for name, kind in defined() if kind != "shifted" or name in SHIFTED]
IDS = [f"{name}-{kind}" for name, kind in EVERY]


def prepared(update, trajectories, seed=0, progress=0.5):
    return update.prepare(trajectories, generator=seeded(seed), progress=progress)


def off_policy(name, kind, **options):
    """Return network, update and batches whose old values and reference are those of other weights."""
    net, other, anchor = network_of(kind), moved(network_of(kind)), moved(network_of(kind), seed=9)
    update = update_for(name, kind, net, **options)
    batches = prepared(update, completions())
    found = []
    for batch in batches:
        old = update.values(other, batch) if update.algorithm.objective.uses_ratio else None
        ref = update.values(anchor, batch) if update.algorithm.kl.active else None
        found.append(batch.with_values(old=old, ref=ref))
    return net, update, found


def test_every_algorithm_of_the_design_is_there():
    assert ALGORITHMS.names() == sorted(
        ["d1", "coupled_grpo", "mdpo", "cj_grpo", "spg", "bgpo", "ebpo", "dtreerpo", "justgrpo", "espo", "elbo_grpo"]
    )
    masked = {name for name, kind in EVERY if kind == "masked"}
    blocks = {name for name, kind in EVERY if kind == "block"}
    assert masked == set(ALGORITHMS.names()) - {"ebpo"}
    assert blocks == set(ALGORITHMS.names()) - {"mdpo", "justgrpo"}
    assert {name for name, kind in defined() if kind == "shifted"} == masked


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_on_policy_the_ratio_is_one_and_the_gradient_that_of_advantage_times_value(name, kind):
    net = network_of(kind)
    update = update_for(name, kind, net, settings={"kl": {"coef": 0.0}, "distil": None})
    for batch in prepared(update, completions()):
        own = update.values(net, batch)
        numbers, found = gradient(update, net, batch.with_values(old=own))
        advantage_U, weight_U = batch.units.advantage_U, batch.policy_U
        assert numbers["ratio"] == pytest.approx(1.0)
        assert numbers["clipped"] == 0.0
        scale_U = batch.units.length_U if getattr(update.algorithm.objective, "per_length", False) else 1.0
        value_U = own if name == "spg" else torch.ones_like(own)
        assert numbers["loss"] == pytest.approx(-float((weight_U * advantage_U * value_U).sum()), abs=1e-6)
        net.zero_grad()
        logp_X = torch.cat([update._logps(net, batch, chunk) for chunk in batch.chunks])
        live_U = update.algorithm.reducer.values(logp_X, batch.scored, batch.units)
        (-(weight_U * advantage_U / scale_U) * live_U).sum().backward()
        assert_same(found, torch.cat([p.grad.flatten() for p in net.parameters()]))
        _, without_old = gradient(update, net, batch)
        assert_same(without_old, found)


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
@pytest.mark.parametrize("skip", [True, False])
def test_equal_rewards_give_no_gradient(name, kind, skip):
    net = network_of(kind)
    update = update_for(name, kind, net, settings={"kl": {"coef": 0.0}, "distil": None}, skip=skip)
    batches = prepared(update, completions(equal=True))
    assert batches
    for batch in batches:
        numbers, found = gradient(update, net, batch)
        assert float(found.abs().max()) == 0.0
        assert numbers["loss"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_leaving_out_completions_without_signal_changes_nothing(name, kind):
    net, trajectories = network_of(kind), completions(groups=2)
    level = {"reward": 1.0, "step_rewards": (0.5,) * 4}
    trees = [replace(t.tree, leaf_rewards=(0.5,) * 4) for t in trajectories[4:]]
    dull = [replace(t, **level, tree=tree) for t, tree in zip(trajectories[4:], trees, strict=True)]
    found = {}
    for skip in (True, False):
        settings = {"kl": {"coef": 0.0}, "distil": None, "minibatches": 1}
        update = update_for(name, kind, net, settings=settings, skip=skip)
        [batch] = prepared(update, [*trajectories[:4], *dull])
        found[skip] = (len(batch.samples), *gradient(update, net, batch))
    assert found[True][0] <= found[False][0] / 2
    assert_same(found[True][2], found[False][2])
    assert found[True][1]["loss"] == pytest.approx(found[False][1]["loss"], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_rows_per_forward_change_nothing(name, kind):
    net, update, batches = off_policy(name, kind, rows=10**6)
    _, split, parts = off_policy(name, kind, rows=3)
    for whole, part in zip(batches, parts, strict=True):
        assert len(whole.chunks) == 1
        assert len(part.chunks) > 1
        numbers, expected = gradient(update, net, whole)
        split_numbers, found = gradient(split, net, part)
        assert_same(found, expected)
        for key in ("loss", "policy_loss", "kl_loss", "distil_loss", "ratio", "clipped"):
            assert split_numbers[key] == pytest.approx(numbers[key], rel=1e-5, abs=1e-7), key


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_two_passes_give_the_gradient_of_one_graph(name, kind):
    net, update, batches = off_policy(name, kind, rows=3)
    for batch in batches:
        _, found = gradient(update, net, batch)
        assert found.any()
        net.zero_grad()
        logp_X = torch.cat([update._logps(net, batch, chunk) for chunk in batch.chunks])
        value_U = update.algorithm.reducer.values(logp_X, batch.scored, batch.units)
        unit_losses(update.algorithm, batch, value_U, slice(0, len(value_U)), Tally()).backward()
        assert_same(found, torch.cat([p.grad.flatten() for p in net.parameters()]))


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_two_processes_are_one(name, kind):
    """Each brings its groups; denominators count both; gradients are averaged."""
    net, trajectories, settings = network_of(kind), completions(groups=4), {"minibatches": 1}
    whole = update_for(name, kind, net, settings=settings)
    other, anchor = moved(network_of(kind)), moved(network_of(kind), seed=9)

    def anchored(update, batch):
        old = update.values(other, batch) if update.algorithm.objective.uses_ratio else None
        return batch.with_values(old=old, ref=update.values(anchor, batch) if update.algorithm.kl.active else None)

    [batch] = prepared(whole, trajectories)
    numbers, expected = gradient(whole, net, anchored(whole, batch))
    book, total, loss = {}, torch.zeros_like(expected), 0.0
    shares = [[t for t in trajectories if t.group % 2 == rank] for rank in range(2)]
    for _ in range(4):  # what is gathered later depends on what was gathered before
        updates = [update_for(name, kind, net, world=Part(rank, 2, book), settings=settings) for rank in range(2)]
        found = [prepared(update, share) for update, share in zip(updates, shares, strict=True)]
    for update, [part] in zip(updates, found, strict=True):
        part_numbers, part_gradient = gradient(update, net, anchored(update, part))
        total += part_gradient / 2
        loss += part_numbers["loss"]
    assert_same(total, expected)
    assert loss == pytest.approx(numbers["loss"], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_noise_depends_on_the_completion_and_not_on_the_batch(name, kind):
    net, trajectories = network_of(kind), completions()
    update = update_for(name, kind, net, settings={"minibatches": 1}, skip=False)
    [batch] = prepared(update, trajectories)
    if name == "mdpo":  # which steps are trained on is a choice of the whole batch
        return
    [part] = prepared(update, trajectories[4:8])
    rows = {
        (sample.trajectory.seed, sample.place): noise for sample, noise in zip(batch.samples, batch.noises, strict=True)
    }
    for sample, noise in zip(part.samples, part.noises, strict=True):
        found = rows[sample.trajectory.seed, sample.place]
        assert torch.equal(noise.states[0 : len(noise.states)], found.states[0 : len(found.states)])


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_random_numbers_come_from_the_generator_alone_and_masks_are_shared(name, kind):
    net, trajectories = network_of(kind), completions()
    update = update_for(name, kind, net)
    before = torch.get_rng_state()
    first, second = prepared(update, trajectories), prepared(update, trajectories)
    assert torch.equal(torch.get_rng_state(), before)
    assert [batch.digest() for batch in first] == [batch.digest() for batch in second]
    digest = first[0].digest()
    anchored = update.anchored(first[0], net, net)
    update.backward(net, anchored)
    assert anchored.digest() == digest, "old, reference and policy are scored on the same rows"
    draws_nothing = update.algorithm.corruptor.__class__ in (RecordedState, ReplaySteps, LeftToRight)
    if not draws_nothing and (name, kind) != ("d1", "block"):
        assert prepared(update, trajectories, seed=1)[0].digest() != digest


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=IDS)
def test_padding_and_packing_change_nothing(name, kind):
    net = network_of(kind)
    trajectories = completions()
    update = update_for(name, kind, net, rows=10**6, pack=True)
    padded = update_for(name, kind, net, rows=10**6, pack=False)
    for packed, plain in zip(prepared(update, trajectories), prepared(padded, trajectories), strict=True):
        left, right = update.values(net, packed), padded.values(net, plain)
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
        assert_same(gradient(update, net, packed)[1], gradient(padded, net, plain)[1])


@pytest.mark.parametrize("name", variants())
def test_presets_train(name):
    """Every named variant goes through an update with its own number of passes."""
    net = network_of("masked")
    update = update_for(name, "masked", net, settings={"updates_per_rollout": 2})
    batches = update.passes(completions(groups=2), seed=0)
    assert len(batches) >= 2
    for batch in batches[:2]:
        numbers, found = gradient(update, net, update.anchored(batch, net, net))
        assert bool(torch.isfinite(found).all())
        assert float(found.abs().max()) > 0
        assert numbers["forwards"] > 0


def test_names_of_variants_are_told_apart_and_unknown_ones_answered():
    assert find_algorithm("d1_dare").name == "d1_dare"
    assert find_algorithm("d1_dare").kl.active is False
    with pytest.raises(UsageError, match="did you mean 'cj_grpo'"):
        find_algorithm("cj_gpro")
    assert set(ALGORITHMS.names()) < set(algorithm_names())


def test_completions_without_a_reward_are_left_out():
    net, trajectories = network_of("masked"), completions(groups=1, size=4)
    update = update_for("d1", "masked", net, skip=False)
    lost = [replace(trajectories[0], reward=None), *trajectories[1:]]
    [batch] = prepared(update, lost)
    assert len(batch.samples) == 3
    [alone] = prepared(update, trajectories[1:])
    assert [s.advantage for s in batch.samples] == [s.advantage for s in alone.samples]
    for name in ("d1", "mdpo", "dtreerpo"):
        update = update_for(name, "masked", net)
        assert prepared(update, [replace(t, reward=None) for t in trajectories]) == [], name


@pytest.mark.parametrize("name", ["coupled_grpo", "cj_grpo", "espo"])
def test_processes_with_unequal_work_make_equally_many_forwards(name):
    """Sharded networks work together in every forward; one process has three groups, the other one."""
    trajectories, book, calls = completions(groups=4), {}, []
    shares = [[t for t in trajectories if (t.group == 0) == bool(rank)] for rank in range(2)]
    net = network_of("masked")
    for _ in range(4):
        updates = [update_for(name, "masked", net, rows=3, world=Part(rank, 2, book)) for rank in range(2)]
        found = [prepared(update, share) for update, share in zip(updates, shares, strict=True)]
    body = net.body
    for update, [batch] in zip(updates, found, strict=True):
        count = [0]

        def counted(*args, count=count, **kwargs):
            count[0] += 1
            return body(*args, **kwargs)

        net.body = counted
        anchored = update.anchored(batch, net, net)
        update.backward(net, anchored)
        calls.append(count[0])
    del net.body
    assert calls[0] == calls[1] > 10
    assert [batch.idle for [batch] in found] != [0, 0]
