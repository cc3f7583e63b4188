"""Checks of the golden files about supervised fine-tuning, through the same functions that training calls.

Each reference's own choices are named presets; where a file records two normalisers, both are checked.
"""

from __future__ import annotations

import pytest
import torch

from dare_eval.networks import AttentionMask
from dare_train.corruption import Corruption, mask_at_rates, sequence_rates
from dare_train.objectives import cart_weights, denominator, token_weights, weighted_nll
from dare_train.presets import PRESETS
from dare_train.scorer import Scorer
from tests.golden.recorded import RecordedDraws, StoredLogits, bools

CLOSE = {"rel": 2e-5, "abs": 1e-6}
IGNORED = -100


def noise(ids_BT, maskable_BT, draws, *, mask_id, low, high=1.0, tail_id=None) -> Corruption:
    rate_BT = sequence_rates(ids_BT, draws, low=low, high=high)
    uniform_BT = draws.rand(*ids_BT.shape)
    return mask_at_rates(ids_BT, maskable_BT, rate_BT, uniform_BT, mask_id=mask_id, tail_id=tail_id)


def loss_of(network, ids_BT, noised, maskable_BT, *, weight, normaliser, shift=False, cart_p=0.3, block=None):
    valid_BT = torch.ones_like(maskable_BT)
    weight_BT = token_weights(noised, maskable_BT, weight=weight, normaliser=normaliser, cart_p=cart_p)
    args = (network, noised.noisy_BT, ids_BT, noised.masked_BT, valid_BT)
    logp_X = Scorer(shift=shift, block_length=block, trim=False)(*args)
    whole = float(denominator(noised.masked_BT, maskable_BT, normaliser))
    return weighted_nll(logp_X, weight_BT[noised.masked_BT], whole)


def check_gradient(expected, loss, logits):
    loss.backward()
    for key, value in expected.items():
        if key.endswith("abs_sum"):
            assert float(logits.grad.abs().sum()) == pytest.approx(value, **CLOSE)
        elif key == "grad_row0":
            torch.testing.assert_close(logits.grad[0], torch.tensor(value), rtol=2e-5, atol=1e-6)


def check_mdm(inputs, params, expected):
    ids_BT = torch.tensor(inputs["ids"])
    maskable_BT = torch.arange(ids_BT.shape[1]) >= torch.tensor(inputs["prompt_lens"])[:, None]
    draws = RecordedDraws(inputs["uniform_draws"])
    noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=params["eps"])
    assert draws.used_up()
    assert noised.noisy_BT.tolist() == expected["noisy"]
    assert noised.rate_BT[:, 0].tolist() == pytest.approx(expected["t"])
    assert torch.where(noised.masked_BT, ids_BT, IGNORED).tolist() == expected["labels"]
    logits = torch.tensor(inputs["logits_on_noisy"], requires_grad=True)
    ours = loss_of(StoredLogits(logits), ids_BT, noised, maskable_BT, **parts("d1"))
    assert float(ours) == pytest.approx(expected["loss_d1"], **CLOSE)
    check_gradient({key: value for key, value in expected.items() if key.startswith("grad_d1")}, ours, logits)
    dare = loss_of(StoredLogits(logits), ids_BT, noised, maskable_BT, **parts("llada_dare"))
    assert float(dare) == pytest.approx(expected["loss_dare"], **CLOSE)


def check_dllm(inputs, params, expected):
    ids_BT, maskable_BT = torch.tensor(inputs["ids"]), torch.tensor(inputs["labels"]) != IGNORED
    draws = RecordedDraws(inputs["uniform_draws"])
    noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=params["time_epsilon"])
    assert draws.used_up()
    assert noised.noisy_BT.tolist() == expected["noisy"]
    normaliser = {"token": "batch_tokens", "sequence": "sequence", "batch": "rows"}[params["loss_norm_type"]]
    weight, _, cart_p = params["weight"].partition("[")
    names = {"scheduler": "inverse_rate", "uniform": "uniform", "cart": "cart"}
    settings = {"weight": names[weight], "normaliser": normaliser, "shift": params["right_shift_logits"]}
    if cart_p:
        settings["cart_p"] = float(cart_p.rstrip("]"))
    logits = torch.tensor(inputs["logits_on_noisy"], requires_grad=True)
    loss = loss_of(StoredLogits(logits), ids_BT, noised, maskable_BT, **settings)
    assert float(loss) == pytest.approx(expected["loss"], **CLOSE)
    check_gradient(expected, loss, logits)


def check_dream_dare(inputs, params, expected):
    ids_BT, maskable_BT = torch.tensor(inputs["ids"]), bools(inputs["maskable"])
    draws = RecordedDraws(inputs["uniform_draws"])
    low = PRESETS["dream_dare"]["time_low"]
    noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=low, tail_id=params.get("eos_token_id"))
    assert draws.used_up()
    assert noised.noisy_BT.tolist() == expected["noisy"]
    assert noised.masked_BT.int().tolist() == expected["mask"]
    assert noised.rate_BT[:, 0].tolist() == pytest.approx(expected["t"])
    logits = torch.tensor(inputs["logits_on_noisy"])
    loss = loss_of(StoredLogits(logits), ids_BT, noised, maskable_BT, shift=True, **parts("dream_dare"))
    assert float(loss) == pytest.approx(expected["loss_dare"], **CLOSE)


def check_llada2(inputs, params, expected):
    ids_BT = torch.tensor([inputs["ids"]])
    maskable_BT = (bools([inputs["attention_mask"]])) & (torch.arange(ids_BT.shape[1]) >= inputs["prompt_len"])
    low, high = params["noise_range"]
    draws = RecordedDraws(inputs["uniform_draws"])
    noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=low, high=high)
    assert draws.used_up()
    assert float(noised.rate_BT[0, 0]) == pytest.approx(expected["t"])
    assert noised.noisy_BT[0].tolist() == expected["noisy"]
    assert noised.masked_BT[0].int().tolist() == expected["mask"]
    assert torch.where(noised.masked_BT, ids_BT, IGNORED)[0].tolist() == expected["labels"]
    logits = torch.tensor([inputs["logits_on_noisy"]])
    loss = loss_of(StoredLogits(logits), ids_BT, noised, maskable_BT, **parts("llada2"))
    assert float(loss) == pytest.approx(expected["loss"], **CLOSE)


def check_bd3lm(inputs, params, expected):
    ids_BT, maskable_BT = torch.tensor(inputs["ids"]), torch.tensor(inputs["labels"]) != IGNORED
    draws = RecordedDraws(inputs["uniform_draws"])
    noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=params["time_epsilon"])
    assert draws.used_up()
    network = StoredLogits(torch.tensor(inputs["logits_2N"]))
    loss = loss_of(network, ids_BT, noised, maskable_BT, block=params["block_size"], **parts("bd3lm"))
    assert network.seen[0]["ids"].tolist() == expected["model_input_ids"]
    assert network.seen[0]["positions"].tolist() == expected["position_ids"]
    assert float(loss) == pytest.approx(expected["loss"], **CLOSE)


def check_sdar(inputs, params, expected):
    """Unpack the packed rows: ours corrupts and scores rows, and packs afterwards if at all."""
    ids, prompts = inputs["ids"][0], inputs["prompt_mask"][0]
    starts = [place for place, position in enumerate(inputs["position_ids"][0]) if position == 0]
    ends = [*starts[1:], len(ids)]
    assert [end - start for start, end in zip(starts, ends, strict=True)] == expected["lengths"]
    rate_draw, mask_draw = (draw["value"] for draw in inputs["uniform_draws"])
    total, answers, hidden = 0.0, 0, iter(inputs["logits_at_masked"])
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        ids_BT, maskable_BT = torch.tensor([ids[start:end]]), ~bools([prompts[start:end]])
        draws = RecordedDraws([{"value": [rate_draw[number]]}, {"value": [mask_draw[0][start:end]]}])
        noised = noise(ids_BT, maskable_BT, draws, mask_id=params["mask_id"], low=params["eps_t"])
        assert noised.noisy_BT[0].tolist() == expected["noisy"][0][start:end]
        assert noised.masked_BT[0].int().tolist() == expected["mask"][0][start:end]
        logits = torch.zeros(1, 2 * (end - start), len(inputs["logits_at_masked"][0]))
        for place in noised.masked_BT[0].nonzero().flatten():
            logits[0, place] = torch.tensor(next(hidden))
        network = StoredLogits(logits)
        loss = loss_of(network, ids_BT, noised, maskable_BT, block=params["block_size"], **parts("sdar"))
        total += float(loss) * int(maskable_BT.sum())
        answers += int(maskable_BT.sum())
        window = slice(2 * start, 2 * end)
        wanted = bools(expected["packed_mask_2N"])
        assert torch.equal(dense(network.seen[0]["mask"], 2 * (end - start)), wanted[window, window])
        assert not wanted[window, : 2 * start].any() and not wanted[window, 2 * end :].any()
    assert total / answers == pytest.approx(expected["loss"], **CLOSE)


def check_cart(inputs, params, expected):
    found = cart_weights(bools(inputs["masked"]), params["p"])
    torch.testing.assert_close(found, torch.tensor(expected["weights"]), rtol=2e-5, atol=1e-7)


def check_bd_mask(inputs, params, expected):
    assert torch.equal(doubled_mask(inputs["n"], params["block_size"]), bools(expected["mask"]))


def doubled_mask(length, block_length):
    mask = AttentionMask.noisy_clean(torch.zeros(1, length, dtype=torch.long), block_length)
    return dense(mask, 2 * length)


def dense(mask, length):
    return mask.dense(torch.arange(length)[None], length)[0, 0]


def parts(preset):
    return {key: PRESETS[preset][key] for key in ("weight", "normaliser")}


SFT_CHECKS = {
    "sft_mdm": check_mdm,
    "sft_dllm": check_dllm,
    "sft_dream_dare": check_dream_dare,
    "sft_llada2": check_llada2,
    "sft_bd3lm": check_bd3lm,
    "sft_sdar": check_sdar,
    "cart": check_cart,
    "bd_mask": check_bd_mask,
}
