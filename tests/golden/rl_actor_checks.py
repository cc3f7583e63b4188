"""Golden files of the reference system's padded batches: the same values from the rows without their padding."""

from __future__ import annotations

import pytest
import torch

from dare_train.rl.noise import Noise
from tests.golden.recorded import bools
from tests.golden.rl_kit import CLOSE, StoredRows, facts, run, sample, unpadded, updater


def actor(inputs, known, settings=None, *, name, noisy="noisy", mask="mask"):
    """Return update, samples and noise of a padded batch, without its padding."""
    update = updater(name, known, settings=settings)
    samples, noises, kept = [], [], []
    advantages = inputs.get("advantages", [1.0] * len(inputs["ids"]))
    for number, ids in enumerate(inputs["ids"]):
        columns, length = unpadded(ids, inputs["attention_mask"][number], inputs["response_len"])
        one = sample(torch.tensor(ids)[columns], length, known, advantage=advantages[number])
        target = bools(inputs[mask][number])[:, columns] & one.loss_T
        weight = None
        if "p_mask" in inputs:
            rate = torch.tensor(inputs["p_mask"][number])[:, columns]
            weight = torch.where(target, 1.0 / rate, torch.zeros(()))
        samples.append(one)
        noises.append(Noise.of(torch.tensor(inputs[noisy][number])[:, columns], target, weight))
        kept.append(columns)
    return update, samples, noises, kept


def gathered(logits_MBSV, kept):
    """Return the stored logits of all rows, sequence by sequence, without padding columns (padded on the right)."""
    width = max(len(columns) for columns in kept)
    rows = []
    for number, columns in enumerate(kept):
        part = logits_MBSV[:, number, columns]
        rows.append(torch.nn.functional.pad(part, (0, 0, 0, width - len(columns))))
    return torch.cat(rows)


def check_actor_d1(inputs, params, expected):
    update, samples, noises, kept = actor(inputs, facts(params), name="d1_dare")
    logits = gathered(torch.tensor(inputs["logits_B_S_V"])[None], kept)
    batch = update.assemble(samples, noises)
    compare_tokens(update.values(StoredRows(logits), batch), batch, inputs, kept, expected["logp"])


def check_actor_coupled(inputs, params, expected):
    update, samples, noises, kept = actor(inputs, facts(params), name="coupled_grpo_dare")
    logits = gathered(torch.tensor(inputs["logits_3_B_S_V"]), kept)
    batch = update.assemble(samples, noises)
    start = len(inputs["ids"][0]) - inputs["response_len"]
    wanted = [row[start:] for row in expected["logp_full_sequence"]]
    compare_tokens(update.values(StoredRows(logits), batch), batch, inputs, kept, wanted)


def compare_tokens(found_U, batch, inputs, kept, wanted_BR):
    start = len(inputs["ids"][0]) - inputs["response_len"]
    columns = [int(kept[s][c]) - start for s, c in zip(batch.units.sample_U, batch.units.column_U, strict=True)]
    wanted = torch.tensor(wanted_BR)[batch.units.sample_U, torch.tensor(columns)]
    torch.testing.assert_close(found_U, wanted, rtol=2e-5, atol=1e-6)
    assert len(found_U) == sum(sum(row[start:]) for row in inputs["attention_mask"])


def check_actor_bgpo(inputs, params, expected):
    update, samples, noises, kept = actor(inputs, facts(params), name="bgpo_dare")
    logits = gathered(torch.tensor(inputs["logits_M_B_S_V"]), kept)
    batch = update.assemble(samples, noises)
    found = update.values(StoredRows(logits), batch).view(-1, params["mc"])
    assert found.mean(1).tolist() == pytest.approx(expected["elbo_mean_over_mc"], **CLOSE)
    padded = found / inputs["response_len"]  # ours divides by the counted length, theirs by the padded one
    torch.testing.assert_close(padded, torch.tensor(expected["elbo_norm_per_mc"]), rtol=2e-5, atol=1e-6)


def check_actor_cj(inputs, params, expected):
    known = facts(params)
    settings = {
        "objective": {"clip_low": params["clip"], "clip_high": params["clip"], "dual_clip": params["dual_clip_c"]}
    }
    settings["updates_per_rollout"] = 2
    update = updater("cj_grpo_dare", known, settings=settings)
    samples, noises, kept = [], [], []
    for number, ids in enumerate(inputs["ids"]):
        columns, length = unpadded(ids, inputs["attention_mask"][number], inputs["response_len"])
        size = len(columns) - length
        steps = tuple(inputs["step_map"][number][:size])
        advantage = inputs["advantages"][number]
        samples.append(sample(torch.tensor(ids)[columns], length, known, advantage=advantage, step_map=steps))
        noises.append(update.algorithm.corruptor(samples[-1], None, known))
        kept.append(columns)
    stored = torch.tensor(inputs["logits_K_B_S_V"])
    width = max(len(columns) for columns in kept)
    rows = []
    for number, noise in enumerate(noises):
        for row, step in enumerate(noise.step_M.tolist()):
            part = stored[step, number, kept[number]]
            rows.append(torch.nn.functional.pad(part, (0, 0, 0, width - len(kept[number]))))
            check_packed(expected["packed_states"][step][0], noises, number, noise.states[row].tolist(), kept)
    start = len(inputs["ids"][0]) - inputs["response_len"]

    def table(values):
        def pick(batch):
            units = batch.units
            places = zip(units.sample_U.tolist(), units.column_U.tolist(), strict=True)
            columns = torch.tensor([int(kept[s][c]) - start for s, c in places])
            return torch.tensor(values)[units.sample_U, units.step_U, columns]

        return pick

    logits = torch.stack(rows).requires_grad_()
    numbers, batch, network = run(update, samples, noises, logits, old=table(inputs["old_logp"]))
    found = update.values(network, batch)
    torch.testing.assert_close(found, table(expected["logp_steps"])(batch), rtol=2e-5, atol=1e-6)
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)


def check_packed(packed, noises, number, state, kept):
    first = sum(len(columns) for columns in kept[:number])
    assert packed[first : first + len(state)] == state


def check_actor_spg(inputs, params, expected):
    known = facts(params)
    for negative, numbers in expected.items():
        settings = {
            "advantage": {"by_std": False},
            "corruptor": {"rows": params["num_t"]},
            "reducer": {"negative": negative, "beta": params["eubo_beta"], "mix": params["mix_weight"]},
        }
        update, samples, noises, kept = actor(inputs, known, settings, name="spg_dare")
        logits = gathered(torch.tensor(inputs["logits_T_B_S_V"]), kept).requires_grad_()
        found, batch, network = run(update, samples, noises, logits)
        assert update.values(network, batch).tolist() == pytest.approx(numbers["per_seq_logp"], **CLOSE)
        assert found["loss"] == pytest.approx(numbers["loss"], **CLOSE)


ACTOR_CHECKS = {
    "dare_actor_d1": check_actor_d1,
    "dare_actor_coupled": check_actor_coupled,
    "dare_actor_bgpo": check_actor_bgpo,
    "dare_actor_cj": check_actor_cj,
    "dare_actor_spg": check_actor_spg,
}
