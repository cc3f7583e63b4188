"""Golden files of algorithms that replay recorded states: CJ-GRPO, MDPO, d-TreeRPO, JustGRPO."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dare_train.rl.samples import make_sample
from tests.golden.rl_kit import CLOSE, StoredRows, clip, clipped, facts, from_table, run, sample, unpadded, updater


def step_table(table, length):
    values_KBR = torch.tensor(table)

    def pick(batch):
        units = batch.units
        return values_KBR[units.step_U, units.sample_U, units.column_U - length]

    return pick


def check_cj(inputs, params, expected):
    known, length = facts(params), inputs["prompt_len"]
    settings = clipped(params, params["epsilon"])
    update = updater("cj_grpo", known, settings=settings)
    samples, noises = [], []
    for ids, advantage, steps in zip(inputs["ids"], inputs["advantages"], inputs["step_map"], strict=True):
        samples.append(sample(ids, length, known, advantage=advantage, step_map=tuple(steps)))
        noises.append(update.algorithm.corruptor(samples[-1], None, known))
        for row, step in enumerate(noises[-1].step_M.tolist()):
            assert noises[-1].states[row].tolist() == expected["states"][step][len(samples) - 1]
    stored = torch.tensor(inputs["logits_per_step"], requires_grad=True)
    logits = torch.stack(
        [stored[step, number] for number, noise in enumerate(noises) for step in noise.step_M.tolist()]
    )
    many = params["num_iterations"] > 1
    numbers, batch, network = run(
        update,
        samples,
        noises,
        logits,
        old=step_table(inputs["old_logp"], length) if many else None,
        ref=step_table(inputs["ref_logp"], length) if params["beta"] else None,
    )
    wanted = step_table(expected["logp_per_step"], length)(batch)
    torch.testing.assert_close(update.values(network, batch), wanted, rtol=2e-5, atol=1e-6)
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    for step, size in enumerate(expected["grad_abs_sum_per_step"]):
        assert float(stored.grad[step].abs().sum()) == pytest.approx(size, **CLOSE)


def check_cj_block(inputs, params, expected):
    known = facts(params, family="sdar", block_length=params["block_size"])
    # The network's grid starts at the first token; blocks that start with the response are the same grid after the
    # prompt's first tokens are left out.
    cut = inputs["prompt_len"] % params["block_size"] if params["block_origin"] == "response" else 0
    length = inputs["prompt_len"] - cut
    update = updater("cj_grpo", known)
    samples, noises = [], []
    for whole_ids, steps, mask in zip(inputs["ids"], inputs["local_step_map"], inputs["attention_mask"], strict=True):
        ids, valid = whole_ids[cut:], mask[cut:]
        width = sum(valid)
        assert valid == [1] * width + [0] * (len(valid) - width)
        samples.append(sample(ids[:width], length, known, step_map=tuple(steps[: width - length])))
        noises.append(update.algorithm.corruptor(samples[-1], None, known))
    batch = update.assemble(samples, noises)
    whole = float(len(samples))
    weight_BKR = torch.zeros(torch.tensor(expected["token_weights"]).shape)
    for number, noise in enumerate(noises):
        width = len(samples[number].ids_T)
        for row, step in enumerate(noise.step_M.tolist()):
            shown = slice(cut, cut + width)
            assert noise.states[row].tolist() == expected["noisy_per_step"][step][number][shown]
            chosen = noise.column_X[noise.row_X == row]
            target = torch.zeros(width, dtype=torch.long).index_fill(0, chosen, 1)
            assert target.tolist() == expected["target_per_step"][step][number][shown]
            assert target.tolist() == expected["trajectory"][number][step][shown]
    units = batch.units
    weight_BKR[units.sample_U, units.step_U, units.column_U - length] = batch.policy_U * whole
    torch.testing.assert_close(weight_BKR, torch.tensor(expected["token_weights"]), rtol=2e-5, atol=1e-7)
    mass = weight_BKR.sum((0, 2)).tolist()
    assert mass == pytest.approx(expected["step_mass"], **CLOSE)
    logp_BKR = torch.tensor(inputs["step_logp"])
    logp_X = logp_BKR[units.sample_U, units.step_U, units.column_U - length]
    found = torch.zeros(len(samples), logp_BKR.shape[2])
    found[units.sample_U, units.column_U - length] = update.algorithm.reducer.values(logp_X, batch.scored, units)
    for number, one in enumerate(samples):
        valid = len(one.ids_T) - length
        wanted = expected["collapsed_logp"][number][:valid]
        assert found[number, :valid].tolist() == pytest.approx(wanted, **CLOSE)


def check_mdpo(inputs, params, expected):
    known, length = facts(params), inputs["prompt_len"]
    assert params["temperature"] == 1.0
    many = params["num_iterations"] > 1
    settings = clipped(params, params["epsilon"])
    shift = params["model_type"] == "dream"
    update = updater("mdpo", known, settings=settings, shift=shift)
    samples, noises = [], []
    rows = zip(inputs["input_ids"], inputs["target_ids"], inputs["advantages"], inputs["confidence"], strict=True)
    for state, ids, advantage, confidence in rows:
        one = sample(ids, length, known, advantage=advantage)
        gain_T = torch.cat([torch.zeros(length), torch.tensor(confidence)])
        samples.append(replace(one, state_T=torch.tensor(state), gain_T=gain_T))
        noises.append(update.algorithm.corruptor(samples[-1], None, known))
    logits = torch.tensor(inputs["logits"], requires_grad=True)
    old = from_table(inputs["old_logp"], length) if many else None
    ref = from_table(inputs["ref_logp"], length) if params["beta"] else None
    numbers, batch, network = run(update, samples, noises, logits, old=old, ref=ref)
    found = update.values(network, batch)
    torch.testing.assert_close(found, from_table(expected["logp"], length)(batch), rtol=2e-5, atol=1e-6)
    assert numbers["loss"] == pytest.approx(expected["mdpo_repo_loss"], rel=1e-3)
    assert numbers["clipped"] == pytest.approx(expected["dare_clipfrac"], **CLOSE)
    return numbers


def check_tree(inputs, params, expected):
    known = facts(params, eos_id=params["eos_id"])
    length = inputs["prompt_len"]
    settings = clip(params["epsilon"]) | {"kl": {"coef": params["beta"]}}
    if params["self_distillation"]:
        names = {"weight": "lambda_max", "growth": "gamma", "temperature": "tau_max", "decay": "beta_tau"}
        settings["distil"] = {ours: params[theirs] for ours, theirs in names.items()}
    else:
        settings["distil"] = None
    update = updater("dtreerpo", known, settings=settings)
    samples, noises = [], []
    rows = zip(inputs["parent"], inputs["child"], inputs["local_advantages"], inputs["group_ids"], strict=True)
    for parent, child, advantage, group in rows:
        one = sample(child, length, known, advantage=advantage)
        one = make_sample(one.trajectory, torch.tensor(child[length:]), advantage, "to_first_eos", known)
        samples.append(replace(one, state_T=torch.tensor(parent), siblings=group))
        noises.append(update.algorithm.corruptor(samples[-1], None, known))
    logits = torch.tensor(inputs["logits_on_parent"], requires_grad=True)
    progress = params["global_step"] / params["max_steps"]
    batch = update.assemble(samples, noises, progress)
    batch = batch.with_values(
        old=from_table(inputs["old_logp"], length)(batch), ref=from_table(inputs["ref_logp"], length)(batch)
    )
    network = StoredRows(logits)
    numbers = update.backward(network, batch)
    found = update.values(network, batch)
    torch.testing.assert_close(found, from_table(expected["transition_logp"], length)(batch), rtol=2e-5, atol=1e-6)
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    whole, logits.grad = logits.grad, None
    update.backward(network, replace(batch, distil_U=None, constant=0.0))
    # Children of one parent share its forward. The reference reads the distilled distribution from the first child's
    # copy of it, ours from each child's own: equal in a network, told apart by stored logits.
    policy, groups = logits.grad.clone(), torch.tensor(inputs["group_ids"])
    better = torch.tensor(inputs["local_advantages"]) > 0
    sums = []
    for candidates in (torch.ones_like(better), better):  # the first child, or the first of those distilled from
        found = policy.clone()
        for group in groups.unique():
            mine = groups == group
            first = (mine & candidates).nonzero().flatten()[:1]
            found[first] += (whole - policy)[mine].sum(0)
        sums.append(float(found.abs().sum()))
    assert any(size == pytest.approx(expected["grad_abs_sum"], **CLOSE) for size in sums)


def check_justgrpo(inputs, params, expected):
    known, length = facts(params), inputs["prompt_len"]
    update = updater("justgrpo", known, settings=clip(params["eps"]))
    scale = params["gain"] * (len(inputs["ids"][0]) - length) / params["gen_length"]
    samples = [
        sample(ids, length, known, advantage=advantage)
        for ids, advantage in zip(inputs["ids"], inputs["advantages"], strict=True)
    ]
    noises = [update.algorithm.corruptor(one, None, known) for one in samples]
    for number, noise in enumerate(noises):
        for row in range(len(noise.states)):
            assert noise.states[row : row + 1][0].tolist() == expected["states"][row][number]
    stored = torch.tensor(inputs["logits_per_position"], requires_grad=True)
    logits = torch.cat(list(stored.transpose(0, 1))) / params["temperature"]
    numbers, _, _ = run(update, samples, noises, logits)
    assert scale * numbers["loss"] == pytest.approx(expected["total_loss"], rel=2e-5, abs=1e-6)
    rows, columns = stored.shape[0], torch.arange(length, stored.shape[2])
    found = scale * stored.grad[torch.arange(rows), :, columns]
    torch.testing.assert_close(found, torch.tensor(expected["grad_at_target_rows"]), rtol=2e-5, atol=1e-6)


def check_justgrpo_pack(inputs, params, expected):
    """Their packed rows, cut apart again: for each position the states of all sequences."""
    known = facts(params)
    update = updater("justgrpo", known)
    states, targets, places = [], [], []
    for ids, valid in zip(inputs["ids"], inputs["attention_mask"], strict=True):
        columns, length = unpadded(ids, valid, inputs["response_len"])
        one = sample(torch.tensor(ids)[columns], length, known)
        noise = update.algorithm.corruptor(one, None, known)
        states.append(noise.states[params["start"] : params["end"]])
        targets.append(one.ids_T[noise.column_X])
        places.append(noise.column_X)
    ends = expected["cu_seqlens"]
    packed = torch.tensor(expected["packed_input"][0])
    for number, (row, position) in enumerate(
        zip(expected["batch_indices"], expected["relative_positions"], strict=True)
    ):
        at = params["start"] + position
        assert packed[ends[number] : ends[number + 1]].tolist() == states[row][position].tolist()
        assert int(targets[row][at]) == expected["target_ids"][number]
        assert int(places[row][at]) == expected["target_offsets"][number] - ends[number]


REPLAY_CHECKS = {
    "cj_grpo": check_cj,
    "cj_block": check_cj_block,
    "mdpo_loss": check_mdpo,
    "dtreerpo_loss": check_tree,
    "justgrpo": check_justgrpo,
    "justgrpo_pack": check_justgrpo_pack,
}
