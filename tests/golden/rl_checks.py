"""Golden files of whole algorithms: recorded draws and logits in, loss and gradient of the update that trains out.

Presets carry a reference's own choices; a file's own constants (clip range, KL) replace those of the algorithm.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dare_train.rl.corruptors import FullMask
from dare_train.rl.noise import Noise
from tests.golden.recorded import RecordedDraws
from tests.golden.rl_kit import CLOSE, clipped, facts, from_table, rate, run, sample, updater


def check_d1(inputs, params, expected):
    known = facts(params)
    length = inputs["prompt_len"]
    settings = clipped(params, params["epsilon"], corruptor={"prompt_rate": params["p_mask_prompt"]})
    update = updater("d1", known, settings=settings)
    samples, noises = [], []
    rows = zip(inputs["ids"], inputs["advantages"], inputs["completion_mask"], strict=True)
    for number, (ids, advantage, counted) in enumerate(rows):
        samples.append(sample(ids, length, known, advantage=advantage, counted=counted))
        draws = RecordedDraws([rate(inputs["uniform_draws"][0]["value"][number][:length])])
        noises.append(update.algorithm.corruptor(samples[-1], draws, known))
        assert draws.used_up()
    logits = torch.tensor(inputs["logits_on_noisy"], requires_grad=True)
    many = params["num_iterations"] > 1
    assert update.needs_old == many
    old = from_table(inputs["old_logp"], length) if many else None
    ref = from_table(inputs["ref_logp"], length) if params["beta"] else None
    numbers, _, network = run(update, samples, noises, logits, old=old, ref=ref)
    assert network.seen[0].tolist() == expected["noisy"]
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    assert float(logits.grad.abs().sum()) == pytest.approx(expected["grad_wrt_logits_abs_sum"], **CLOSE)
    torch.testing.assert_close(logits.grad[0], torch.tensor(expected["grad_row0"]), rtol=2e-5, atol=1e-6)


def check_coupled(inputs, params, expected):
    known, length = facts(params), inputs["prompt_len"]
    settings = clipped(params, params["eps_low"], params["eps_high"])
    update = updater("coupled_grpo", known, settings=settings, shift=params["shift_logits"])
    share, uniform = (draw["value"] for draw in inputs["draws_in_order"])
    samples, noises = [], []
    rows = zip(inputs["ids"], inputs["advantages"], inputs["completion_mask"], strict=True)
    for number, (ids, advantage, counted) in enumerate(rows):
        samples.append(sample(ids, length, known, advantage=advantage, counted=counted))
        draws = RecordedDraws([rate(share), rate(uniform[number])])
        noises.append(update.algorithm.corruptor(samples[-1], draws, known))
        states = noises[-1].states
        assert [states[row].tolist() for row in range(3)] == [expected["noisy"][row][number] for row in range(3)]
    stored = torch.tensor(inputs["logits_3B_order_full_t_complement"], requires_grad=True)
    logits = stored.unflatten(0, (3, len(samples))).transpose(0, 1).flatten(0, 1)
    many = params["num_iterations"] > 1
    numbers, batch, network = run(
        update,
        samples,
        noises,
        logits,
        old=from_table(inputs["old_logp"], length) if many else None,
        ref=from_table(inputs["ref_logp"], length) if params["beta"] else None,
    )
    found = update.values(network, batch)
    torch.testing.assert_close(found, from_table(expected["logp"], length)(batch), rtol=2e-5, atol=1e-6)
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    assert float(stored.grad.abs().sum()) == pytest.approx(expected["grad_wrt_logits_abs_sum"], **CLOSE)


def check_spg(inputs, params, expected):
    if "values" in expected:
        check_spg_degenerate(inputs, params, expected)
        return
    known, length = facts(params), inputs["prompt_len"]
    settings = {
        "reducer": {
            "negative": params["logp_estimation"],
            "beta": params["eubo_beta"],
            "mix": params["mix_weight"],
            "allow_one_row": True,
        }
    }
    update = updater("spg", known, settings=settings)
    samples = [
        sample(ids, length, known, advantage=advantage, counted=counted)
        for ids, advantage, counted in zip(inputs["ids"], inputs["advantages"], inputs["completion_mask"], strict=True)
    ]
    noises = [spg_noise(update, one, number, inputs, params) for number, one in enumerate(samples)]
    for number, (one, noise) in enumerate(zip(samples, noises, strict=True)):
        noisy_MT = torch.tensor(expected["noisy"][number])
        if noise is None:  # a way to draw that no recipe uses: its rows are taken as they are
            noises[number] = Noise.of(noisy_MT, (noisy_MT == params["mask_id"]) & one.loss_T)
            continue
        assert torch.equal(noise.states[0 : len(noise.states)], noisy_MT)
    stored = torch.tensor(inputs["logits_B_by_num_t"], requires_grad=True)
    numbers, _, _ = run(update, samples, noises, stored.flatten(0, 1))
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    assert float(stored.grad.abs().sum()) == pytest.approx(expected["grad_wrt_logits_abs_sum"], **CLOSE)
    check_bounds(samples, noises, stored.detach().flatten(0, 1), known, params, expected)


def check_bounds(samples, noises, logits, known, params, expected):
    """Compare the value that each response would have with a negative advantage."""
    worse = [replace(one, advantage=-1.0) for one in samples]
    for negative, wanted in expected["per_seq_logp_if_negative_advantage"].items():
        reducer = {"negative": negative, "beta": params["eubo_beta"], "mix": params["mix_weight"]}
        update = updater("spg", known, settings={"reducer": {**reducer, "allow_one_row": True}})
        _, batch, network = run(update, worse, noises, logits.clone().requires_grad_())
        assert update.values(network, batch).tolist() == pytest.approx(wanted, **CLOSE)


def spg_noise(update, one, number, inputs, params):
    """Return the noise of one sequence: its own permutation of blocks, its own counts, its share of the numbers."""
    known, draws = facts(params), inputs["draws_in_order"]
    columns = len(inputs["ids"][0])
    uniform = torch.tensor(draws[-1]["value"]).reshape(len(inputs["ids"]), params["num_t"], columns)[number]
    if params["forward_type"] == "all":
        rows = [
            FullMask(params["p_mask_prompt"] if params["use_mask_prompt"] else 0.0)(
                one, RecordedDraws([rate(uniform[row, : inputs["prompt_len"]].tolist())]), known
            )
            for row in range(params["num_t"])
        ]
        return joined(rows)
    if params["forward_type"] != "block_random":
        return None
    sequences = len(inputs["ids"])
    own = draws[sequences + 2 * params["num_t"] * number : sequences + 2 * params["num_t"] * (number + 1)]
    recorded = RecordedDraws([draws[number], *own, rate(uniform.tolist())])
    settings = {
        "corruptor": {
            "rows": params["num_t"],
            "block_length": params["block_length"],
            "context_rate": params["p_mask_prompt"] if params["use_mask_prompt"] else 0.0,
        }
    }
    noise = update.algorithm.with_settings(settings).corruptor(one, recorded, known)
    assert recorded.used_up()
    return noise


def joined(noises):
    """Return the rows of several noises of one sample as one."""
    first = torch.tensor([0, *[len(noise.states) for noise in noises[:-1]]]).cumsum(0).tolist()
    return Noise(
        torch.cat([noise.states[0 : len(noise.states)] for noise in noises]),
        torch.cat([noise.row_X + start for noise, start in zip(noises, first, strict=True)]),
        torch.cat([noise.column_X for noise in noises]),
        torch.cat([noise.weight_X for noise in noises]),
        torch.cat([noise.step_M for noise in noises]),
    )


def check_spg_degenerate(inputs, params, expected):
    """With one row both bounds have the same gradient: shown, and refused unless asked for."""
    known, length = facts(params), params["prompt_len"]
    grads = {}
    for negative, wanted in expected["values"].items():
        reducer = {"negative": negative, "beta": params["eubo_beta"], "allow_one_row": True}
        update = updater("spg", known, settings={"reducer": reducer})
        samples, noises = [], []
        for ids, noisy, counted in zip(inputs["ids"], inputs["noisy"], inputs["completion_mask"], strict=True):
            samples.append(sample(ids, length, known, advantage=-1.0, counted=counted))
            noisy_MT = torch.tensor(noisy)
            noises.append(Noise.of(noisy_MT, (noisy_MT == params["mask_id"]) & samples[-1].loss_T))
        logits = torch.tensor(inputs["logits"], requires_grad=True)
        _, batch, network = run(update, samples, noises, logits)
        assert update.values(network, batch).tolist() == pytest.approx(wanted, **CLOSE)
        logits.grad = None
        update.algorithm.reducer.values(
            update._logps(network, batch, batch.chunks[0]), batch.scored, batch.units
        ).sum().backward()
        grads[negative] = logits.grad.clone()
    torch.testing.assert_close(grads["elbo"], torch.tensor(expected["grad_elbo"]), rtol=2e-5, atol=1e-6)
    assert float((grads["elbo"] - grads["eubo"]).abs().max()) < 1e-6


def check_espo_repo(inputs, params, expected):
    known, length = facts(params), inputs["prompt_len"]
    settings = clipped(params, params["eps"], corruptor={"pairs": 1})
    update = updater("espo", known, settings=settings)
    answer = len(inputs["ids"][0]) - length
    samples, noises = [], []
    for number, (ids, advantage) in enumerate(zip(inputs["ids"], inputs["advantages"], strict=True)):
        samples.append(sample(ids, length, known, advantage=advantage))
        rows = []
        for forward in inputs["forward"]:
            count = round(forward["p"][number] * (answer + 1))
            order = forward["draws"][1 + number]["value"]
            noise = update.algorithm.corruptor(samples[-1], RecordedDraws([rate(count), rate(order)]), known)
            assert noise.states[0].tolist() == forward["noisy"][number]
            rows.append(noise)
        noises.append(joined(rows))
    stored = torch.tensor(inputs["logits_calls"], requires_grad=True)
    numbers, batch, network = run(
        update,
        samples,
        noises,
        stored.transpose(0, 1).flatten(0, 1),
        old=(lambda batch: torch.tensor(inputs["old_elbo"])) if params["num_iterations"] > 1 else None,
        ref=lambda batch: torch.tensor(inputs["ref_elbo"]),
    )
    assert update.values(network, batch).tolist() == pytest.approx(expected["elbo"], **CLOSE)
    assert numbers["loss"] == pytest.approx(expected["loss"], **CLOSE)
    for call, size in enumerate(expected["grad_abs_sum_per_call"]):
        assert float(stored.grad[call].abs().sum()) == pytest.approx(size, **CLOSE)


RL_CHECKS = {
    "d1": check_d1,
    "coupled_grpo": check_coupled,
    "spg": check_spg,
    "espo_repo": check_espo_repo,
}
