"""Golden files of single parts: advantages, surrogates, sequence estimates."""

from __future__ import annotations

import pytest
import torch

from dare_train.estimators import elbo, kl_estimate
from dare_train.rl import aggregate
from dare_train.rl.credit import GroupAdvantage, StepAdvantage, tree_advantages, tree_values
from dare_train.rl.loss import Tally, unit_losses
from dare_train.rl.noise import Noise
from dare_train.rl.trajectory import Tree
from tests.golden.recorded import RecordedDraws, bools
from tests.golden.rl_kit import CLOSE, NEVER, StoredRows, facts, sample, updater

KL_NAMES = {"k1": "k1", "abs": "abs", "k2": "k2", "k3": "k3"}


def numbered(groups):
    """Return groups as whole numbers."""
    names = sorted(set(groups))
    return [names.index(group) for group in groups]


def check_adv_group(inputs, params, expected):
    rewards, groups = inputs["rewards"], numbered(inputs["group"])
    parts = {
        "grpo_std": GroupAdvantage("mean", by_std=True, delta=params["epsilon"]),
        "grpo_mean_only": GroupAdvantage("mean"),
        "rloo": GroupAdvantage("leave_one_out"),
    }
    for name, part in parts.items():
        for found, wanted, mask, group in zip(
            part.of(rewards, groups), expected[name], inputs["response_mask"], groups, strict=True
        ):
            if groups.count(group) == 1:
                assert found == 0.0, "nothing to be compared with"
            else:
                assert [found * kept for kept in mask] == pytest.approx(wanted, **CLOSE)


def check_adv_justgrpo(inputs, params, expected):
    rewards = inputs["rewards"]
    prompts = len(rewards) // params["group_size"]
    groups = [place % prompts for place in range(len(rewards))]
    found = GroupAdvantage("mean", by_std=True, delta=params["eps"]).of(rewards, groups)
    assert found == pytest.approx(expected, **CLOSE)


def check_adv_loo(inputs, params, expected):
    rewards = inputs["rewards"]
    groups = [place // params["num_generations"] for place in range(len(rewards))]
    scale = {"by_std": params["scale_rewards"], "delta": 1e-4}
    assert GroupAdvantage("leave_one_out", **scale).of(rewards, groups) == pytest.approx(
        expected["leave_one_out"], **CLOSE
    )
    assert GroupAdvantage("mean").of(rewards, groups) == pytest.approx(expected["mean_only_d1_spg_cj"], **CLOSE)


def check_mdpo_adv(inputs, params, expected):
    rewards, groups = inputs["step_rewards"], inputs["group"]
    dare = StepAdvantage(top_k=params["k"], by_std=True, delta=params["eps_dare"])
    found = dare.of(rewards, groups)
    torch.testing.assert_close(found.float(), torch.tensor(expected["dare_std"]), rtol=2e-4, atol=1e-5)
    assert dare.choose(found) == expected["top_k_steps_of_dare_std"]
    plain = StepAdvantage(by_std=False).of(rewards, groups).float()
    torch.testing.assert_close(plain, torch.tensor(expected["dare_mean_only"]), rtol=2e-5, atol=1e-6)
    own = StepAdvantage(by_std=True, delta=params["eps_mdpo"]).of(rewards, groups).float()
    first = torch.tensor(groups) == groups[0]
    wanted = torch.tensor(expected["mdpo_repo_first_group"])
    torch.testing.assert_close(own[first], wanted[: int(first.sum())], rtol=2e-4, atol=1e-5)


def check_tree_adv(inputs, params, expected):
    parents = inputs["parent_of_node"]
    states = torch.zeros(len(parents), 1, dtype=torch.long)
    advantages, roots = [], []
    for prompt in range(inputs["prompts"]):
        rewards = tuple(row[prompt] for row in inputs["leaf_rewards_leaf_by_prompt"])
        tree = Tree(parent=tuple(parents), states_NR=states, leaf_rewards=rewards)
        advantages.append(tree_advantages(tree)[1:])
        roots.append(tree_values(tree)[0])
    found = torch.tensor(advantages).T
    torch.testing.assert_close(
        found, torch.tensor(expected["local_advantages_node_major_from_node1"]), rtol=2e-5, atol=1e-6
    )
    assert sum(roots) / len(roots) == pytest.approx(expected["mean_root_value"], **CLOSE)


def token_batch(update, mask, advantages):
    """Return the batch in which each marked position is a token unit, and its samples' positions."""
    known = update.facts
    samples, noises = [], []
    for row, marks in enumerate(mask):
        counted = torch.tensor(marks).bool()
        ids = [NEVER + 1] * len(marks)
        one = sample(ids, 0, known, advantage=advantages[row], counted=counted)
        samples.append(one)
        noises.append(Noise.of(one.ids_T[None], counted[None]))
    return update.assemble(samples, noises)


MODES = {
    "token-mean": ("TokenMean", {}),
    "seq-mean-token-sum": ("Sequences", {"inside": "sum"}),
    "seq-mean-token-mean": ("Sequences", {"inside": "mean"}),
    "seq-mean-token-sum-norm": ("Sequences", {"inside": "sum", "outside": "padded"}),
}


def check_surrogate(inputs, params, expected):
    low = params.get("clip_low", params.get("clip"))
    high = params.get("clip_high", params.get("clip"))
    settings = {"objective": {"clip_low": low, "clip_high": high, "dual_clip": params.get("dual_clip_c", 3.0)}}
    wanted = {mode: expected[mode] for mode in MODES if mode in expected} or {"token-mean": expected}
    if "minus_masked_mean_advantage" in expected:
        assert expected["loss"] == pytest.approx(expected["minus_masked_mean_advantage"], **CLOSE)
    mask = bools(inputs["mask"])
    advantages = [row[0] for row in inputs["advantages"]]
    for mode, numbers in wanted.items():
        name, constants = MODES[mode]
        aggregator = getattr(aggregate, name)(**constants)
        update = updater("d1_dare", facts({}), settings={**settings, "aggregator": aggregator})
        batch = token_batch(update, inputs["mask"], advantages).with_values(old=torch.tensor(inputs["old_logp"])[mask])
        logp = torch.tensor(inputs["logp"], requires_grad=True)
        tally = Tally()
        loss = unit_losses(update.algorithm, batch, logp[mask], slice(0, len(batch.units)), tally)
        loss.backward()
        assert float(loss.detach()) == pytest.approx(numbers["loss"], **CLOSE)
        torch.testing.assert_close(logp.grad, torch.tensor(numbers["grad_wrt_logp"]), rtol=2e-5, atol=1e-6)
        if "clipfrac" in numbers:
            assert tally.sums["clipped"] / len(batch.units) == pytest.approx(numbers["clipfrac"], **CLOSE)
    if "k3_with_ref" in expected:
        gap = kl_estimate(torch.tensor(inputs["logp"])[mask], torch.tensor(inputs["ref_logp"])[mask], "k3")
        assert float(gap.mean()) == pytest.approx(expected["k3_with_ref"], **CLOSE)


def row_batch(update, estimates, lengths, advantages, width):
    """Return a batch whose rows each carry one scored position, and the logp of it that gives ``estimates``."""
    known = update.facts
    samples, noises, logps = [], [], []
    for values, length, advantage in zip(estimates, lengths, advantages, strict=True):
        if length == 0:  # a response without counted tokens never reaches an update
            continue
        counted = torch.arange(width) < length
        one = sample([NEVER + 1] * width, 0, known, advantage=advantage, counted=counted)
        target = torch.zeros(len(values), width, dtype=torch.bool)
        target[:, 0] = True
        samples.append(one)
        noises.append(Noise.of(one.ids_T.expand(len(values), width), target))
        logps.append(values * length)
    return update.assemble(samples, noises), torch.cat(logps)


def check_bgpo(inputs, params, expected):
    settings = {
        "objective": {"clip_low": params["clip"], "clip_high": params["clip"], "dual_clip": params["dual_clip_c"]}
    }
    update = updater("bgpo_dare", facts({}), settings=settings)
    lengths = [int(sum(row)) for row in inputs["mask"]]
    advantages = [row[0] for row in inputs["advantages"]]
    width, rows = len(inputs["mask"][0]), params["mc"]
    current = torch.tensor(inputs["elbo_norm"], requires_grad=True)
    old = torch.tensor(inputs["old_elbo_norm"])
    batch, value_U = row_batch(update, current, lengths, advantages, width)
    old_U = row_batch(update, old, lengths, advantages, width)[1]
    batch = batch.with_values(old=old_U)
    loss = unit_losses(update.algorithm, batch, value_U, slice(0, len(value_U)), Tally())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["mean_loss"], **CLOSE)
    wanted = torch.tensor(expected["per_mc_grad_wrt_elbo_norm"]).T / rows
    torch.testing.assert_close(current.grad, wanted, rtol=2e-5, atol=1e-6)
    for row in range(rows):
        part = unit_losses(update.algorithm, batch, value_U[row : row + 1], slice(row, row + 1), Tally())
        assert torch.isfinite(part)
    own = old.clone().requires_grad_()
    batch, value_U = row_batch(update, own, lengths, advantages, width)
    unit_losses(update.algorithm, batch, value_U, slice(0, len(value_U)), Tally()).backward()
    wanted = torch.tensor(expected["grad_at_old_of_mean_loss"])
    torch.testing.assert_close(own.grad, wanted, rtol=2e-5, atol=1e-6)


def check_ebpo(inputs, params, expected):
    assert params["timestep_weights"] is None
    known = facts({}, family="sdar", block_length=4)
    settings = {"objective": {"clip_low": params["clip_low"], "clip_high": params["clip_high"]}}
    update = updater("ebpo", known, settings=settings)
    current = torch.tensor(inputs["token_elbo"], requires_grad=True)
    old = torch.tensor(inputs["old_token_elbo"])
    mask = bools(inputs["token_mask"]).expand(current.shape)
    samples, noises = [], []
    for row, advantage in enumerate(inputs["advantages"]):
        one = sample([NEVER + 1] * current.shape[2], 0, known, advantage=advantage, counted=mask[row, 0])
        samples.append(one)
        noises.append(Noise.of(one.ids_T.expand(current.shape[1], -1), mask[row]))
    batch = update.assemble(samples, noises)
    reduce = update.algorithm.reducer.values
    value_S = reduce(current[mask], batch.scored, batch.units)
    old_S = reduce(old[mask], batch.scored, batch.units)
    assert value_S.tolist() == pytest.approx(expected["composite"], **CLOSE)
    assert old_S.tolist() == pytest.approx(expected["old_composite"], **CLOSE)
    tally = Tally()
    loss = unit_losses(update.algorithm, batch.with_values(old=old_S), value_S, slice(0, len(value_S)), tally)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["loss"], **CLOSE)
    assert tally.sums["clipped"] / len(value_S) == pytest.approx(expected["clipfrac"], **CLOSE)
    wanted = torch.tensor(expected["grad_wrt_token_elbo"])
    torch.testing.assert_close(current.grad, wanted, rtol=2e-5, atol=1e-6)
    assert float((old_S - value_S).mean().detach()) == pytest.approx(expected["ppo_kl"], **CLOSE)
    for theirs, ours in KL_NAMES.items():
        found = kl_estimate(value_S, old_S, ours).tolist()
        assert found == pytest.approx(expected["kl"][theirs], **CLOSE)


def check_espo_elbo(inputs, params, expected):
    known = facts({"mask_id": 10**6})
    valid = bools(inputs["valid"])
    start, count, length = int(valid.nonzero()[0]), params["k"], params["L"]
    update = updater("espo", known, settings={"corruptor": {"pairs": 1}})
    stored = [torch.tensor(inputs[name]) for name in ("logits_masked", "logits_complement")]
    ids = torch.tensor(inputs["targets"])
    one = sample(ids, start, known, counted=valid[start:])
    hidden = bools(inputs["mask"])[valid]
    assert int(hidden.sum()) == count and int(valid.sum()) == length
    order = torch.empty(length, dtype=torch.long)
    order[hidden.nonzero().flatten()] = torch.arange(count)
    order[(~hidden).nonzero().flatten()] = torch.arange(count, length)
    noise = update.algorithm.corruptor(one, RecordedDraws([{"value": count}, {"value": order.tolist()}]), known)
    batch = update.assemble([one], [noise])
    found = update.values(StoredRows(torch.stack(stored)), batch)
    assert float(found) == pytest.approx(expected["coupled"], **CLOSE)
    first = batch.scored.row_X == 0
    logp_X = update.scorer(StoredRows(torch.stack(stored)), *batch.rows(batch.chunks[0]))[first]
    masked_RT = torch.zeros(1, len(ids), dtype=torch.bool)
    masked_RT[0, noise.column_X[noise.row_X == 0]] = True
    rate_RT = torch.full(masked_RT.shape, count / (length + 1))
    assert float(elbo(logp_X, masked_RT, rate_RT, 1)) == pytest.approx(expected["plain"], **CLOSE)


def check_espo_loss(inputs, params, expected):
    size, known = params["R"], facts({})
    settings = {"objective": {"clip_low": params["clip"], "clip_high": params["clip"]}, "kl": {"coef": 0.0}}
    update = updater("espo", known, settings=settings)
    current = torch.tensor(inputs["elbo_norm"], requires_grad=True)
    old = torch.tensor(inputs["old_elbo_norm"])
    rows = [size] * len(old)
    batch, value_S = row_batch(update, current[:, None], rows, inputs["advantages"], size)
    old_S = row_batch(update, old[:, None], rows, inputs["advantages"], size)[1]
    tally = Tally()
    batch = batch.with_values(old=old_S)
    loss = unit_losses(update.algorithm, batch, value_S, slice(0, len(value_S)), tally)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected["loss"], **CLOSE)
    assert tally.sums["clipped"] / len(value_S) == pytest.approx(expected["clipfrac"], **CLOSE)
    assert current.grad.tolist() == pytest.approx(expected["grad_wrt_elbo_norm"], **CLOSE)
    assert float((old - current).mean().detach()) == pytest.approx(expected["ppo_kl"], **CLOSE)
    for kind, numbers in expected["kl_on_raw_elbo_divided_by_R"].items():
        raw = (current.detach() * size).requires_grad_()
        gap = kl_estimate(raw, old * size, kind) / size
        assert gap.tolist() == pytest.approx(numbers["value"], **CLOSE)
        gap.sum().backward()
        if kind != "k1":  # theirs gives k1 the gradient of another function; ours is the derivative of its value
            assert raw.grad.tolist() == pytest.approx(numbers["grad"], **CLOSE)


PART_CHECKS = {
    "adv_group": check_adv_group,
    "adv_justgrpo": check_adv_justgrpo,
    "adv_loo": check_adv_loo,
    "mdpo_adv": check_mdpo_adv,
    "dtreerpo_adv": check_tree_adv,
    "surrogate": check_surrogate,
    "bgpo_loss": check_bgpo,
    "ebpo_loss": check_ebpo,
    "espo_elbo": check_espo_elbo,
    "espo_loss": check_espo_loss,
}
