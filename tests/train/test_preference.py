"""Preference training: the loss, what shared draws and more rates buy, flat memory, and tiny runs that learn."""

from __future__ import annotations

import json
import math

import pytest
import torch

from dare_eval.errors import DataError, UsageError
from dare_train.algorithms.build import METHODS
from dare_train.algorithms.preference import DEFAULTS, Preference, PreferencePlan
from dare_train.config import PairSettings, PreferenceConfig
from dare_train.data.pairs import Pair, to_pair
from dare_train.data.render import Example
from dare_train.data.supply import Memory
from dare_train.draws import derive, seeded
from dare_train.engine.metrics import read_metrics
from dare_train.engine.world import World
from dare_train.estimators import preference_losses
from dare_train.replay import replay_backward
from dare_train.run import run
from dare_train.scorer import Scorer
from dare_train.settings import validate
from tests.train.conftest import same_weights, weights_of
from tests.train.test_loop import quiet
from tests.train.test_scorer import TOKENS, network

PLAN = {
    "algo": "vrpo",
    "beta": 0.2,
    "times": 4,
    "masks_per_time": 1,
    "shared_draws": True,
    "by_length": False,
    "rows_per_forward": 5,
    "heldout_times": 2,
    "seed": 0,
    "batch_size": 4,
    "micro_batch_size": 4,
    "mask_id": TOKENS["mask_token_id"],
    "pad_id": TOKENS["pad_token_id"],
    "scorer": Scorer(),
}


def pairs(count, seed=0):
    generator = seeded(seed)

    def example(length):
        ids = torch.randint(3, TOKENS["vocab_size"], (2 + length,), generator=generator)
        return Example(tuple(ids.tolist()), 2)

    return [Pair(example(5), example(4 + index % 3)) for index in range(count)]


def method(net, count=4, **changes):
    supply = Memory(pairs(count), 0, shuffle=False)
    found = Preference(supply, pairs(3, seed=9), PreferencePlan(**{**PLAN, **changes}), World())
    found.begin(net, network)
    return found


def moved(net, size=0.05):
    generator = seeded(5)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * size)
    return net


def gradient(net, algorithm, step=0):
    net.zero_grad()
    totals = {}
    for part in algorithm.work(step):
        for key, value in algorithm.backward(net, part).items():
            totals[key] = totals.get(key, 0.0) + value
    return totals, [p.grad.clone() for p in net.parameters() if p.grad is not None]


@pytest.mark.parametrize("algo", ["dpo", "vrpo"])
def test_before_training_the_loss_is_ln_2_exactly_when_draws_are_shared(algo):
    net = network()
    totals, _ = gradient(net, method(net, algo=algo, **DEFAULTS[algo]))
    assert (totals["loss"] == pytest.approx(math.log(2), abs=1e-12)) == DEFAULTS[algo]["shared_draws"]


def test_swapping_the_answers_flips_the_margin():
    margin = torch.tensor([0.3, -2.0])
    forward, backward = preference_losses(margin, 0.5), preference_losses(-margin, 0.5)
    torch.testing.assert_close(forward - backward, -0.5 * margin)


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_replay_gives_the_gradient_of_one_graph_whatever_the_chunk(chunk):
    net = network()
    algorithm = method(net)
    moved(net)
    _, whole = gradient(net, algorithm)
    algorithm.plan = PreferencePlan(**{**PLAN, "rows_per_forward": chunk})
    totals, split = gradient(net, algorithm)
    for left, right in zip(whole, split, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-15)
    assert totals["margin"] != 0


def test_every_copy_of_an_answer_stands_beside_the_other_answers_so_that_chunks_do_not_grow():
    algorithm = method(network())
    one = algorithm.work(0)[0].policy.ids_RT
    algorithm.plan = PreferencePlan(**{**PLAN, "times": 16})
    many = algorithm.work(0)[0].policy
    assert torch.equal(many.ids_RT, one[:8].repeat(16, 1)) and len(one) == 8 * PLAN["times"]
    counts = many.noise.masked_BT.sum(1).view(16, 8)
    assert all(len(set(counts[:, answer].tolist())) > 2 for answer in range(8)), "each answer at many rates"


def test_replay_equals_a_joint_graph_for_a_function_that_is_no_sum():
    weight = torch.randn(4, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    inputs = [torch.randn(3, 4, generator=seeded(i), dtype=torch.float64) for i in range(5)]

    def objective(values):
        return (values.view(5, 3).logsumexp(0) ** 2).sum() + values.prod()

    objective(torch.cat([x @ weight for x in inputs])).backward()
    expected = weight.grad.clone()
    weight.grad = None
    replay_backward([lambda x=x: x @ weight for x in inputs], objective)
    torch.testing.assert_close(weight.grad, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("micro", [1, 3])
def test_splitting_the_pairs_never_changes_loss_and_gradient(micro):
    net = network()
    algorithm = method(net)
    moved(net)
    whole, expected = gradient(net, algorithm)
    algorithm.plan = PreferencePlan(**{**PLAN, "micro_batch_size": micro})
    split, found = gradient(net, algorithm)
    assert split["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    for left, right in zip(expected, found, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-12)


def test_more_rates_and_shared_draws_lower_the_variance_in_the_known_order():
    """Naive 1 x 8 independent > 8 x 1 independent > 1 x 8 shared > 8 x 1 shared, and all four agree on the mean."""
    net = network()
    algorithm = method(net, count=1)
    moved(net, 0.005)
    spread, mean = [], []
    for times, masks, shared in ((1, 8, False), (8, 1, False), (1, 8, True), (8, 1, True)):
        margins = []
        for seed in range(60):
            changes = {"times": times, "masks_per_time": masks, "shared_draws": shared, "seed": seed, "batch_size": 1}
            algorithm.plan = PreferencePlan(**{**PLAN, **changes})
            margins.append(gradient(net, algorithm)[0]["margin"])
        values = torch.tensor(margins, dtype=torch.float64)
        spread.append(float(values.var()))
        mean.append((float(values.mean()), float(values.std()) / math.sqrt(len(values))))
    assert spread == sorted(spread, reverse=True) and spread[0] > 5 * spread[2], spread
    for value, error in mean[:3]:
        assert abs(value - mean[3][0]) < 4 * (error + mean[3][1])


@pytest.mark.parametrize(
    ("record", "part"),
    [
        ({"prompt": "1", "chosen": "2"}, "'rejected' is missing"),
        ({"prompt": "1", "chosen": "2", "rejected": "2"}, "both answers are the same"),
        ({"chosen": [{"role": "user", "content": "1"}], "rejected": "2"}, "no conversation"),
        (
            {
                "chosen": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}],
                "rejected": [{"role": "user", "content": "3"}, {"role": "assistant", "content": "4"}],
            },
            "different prompts",
        ),
    ],
)
def test_a_row_that_is_no_pair_is_refused(record, part):
    with pytest.raises(DataError, match=part):
        to_pair(record, PairSettings(train="x"), 0)


def test_conversations_are_pairs():
    turns = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    other = [turns[0], {"role": "assistant", "content": "3"}]
    chosen, rejected = to_pair({"chosen": turns, "rejected": other}, PairSettings(train="x"), 4)
    assert (chosen.answer, rejected.answer, chosen.index) == ("2", "3", 4) and chosen.turns == rejected.turns


def pairs_file(tmp_path, extra=()):
    def turns(answer):
        return [{"role": "user", "content": "1 2 3 = 6"}, {"role": "assistant", "content": answer}]

    rows = [{"chosen": turns(f"1 + 2 + {n}"), "rejected": turns(f"1 - 2 - {n}"), "score": n} for n in range(20)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *extra]))
    return path


def test_conversations_are_trained_on_and_streamed_alike(tmp_path):
    """UltraFeedback's layout: conversations that end with the answers, scores beside them; a bad pair is counted."""
    path = pairs_file(tmp_path, [{"chosen": [], "rejected": []}])
    found = {}
    for streaming in (False, True):
        data = {"train": str(path), "streaming": streaming, "shuffle": False, "on_bad_row": "skip"}
        config = recipe(tmp_path / str(streaming), data=data, train={"max_steps": 2, "batch_size": 5, "threads": 1})
        folder = run(config, METHODS["preference"], quiet())
        found[streaming] = weights_of(folder.path)
        manifest = json.loads((folder.path / "manifest.json").read_text())
        assert manifest["data"]["skipped"] == {"field 'chosen' is no conversation that ends with the assistant": 1}
    assert same_weights(found[False], found[True])


def test_settings_of_single_rows_do_not_apply_to_pairs():
    for setting in ({"prepared": "x"}, {"messages_field": "x"}, {"eos_padding": "batch"}):
        with pytest.raises(UsageError, match="do not apply to pairs"):
            validate(PairSettings, {"train": "x", **setting})


def recipe(tmp_path, **changes):
    base = {
        "output_dir": str(tmp_path / "run"),
        "model": {"base": "tiny-countdown"},
        "data": {"train": "puzzles/countdown_pairs[sft:200,validation:100]", "end_of_turn": False},
        "optim": {"lr": 1e-3, "schedule": "constant"},
        "train": {"max_steps": 12, "batch_size": 16, "threads": 1},
    }
    return validate(PreferenceConfig, {**base, **changes})


def heldout(folder):
    lines = [line for line in read_metrics(folder.path / "metrics.jsonl") if "heldout_margin" in line]
    assert lines[0]["step"] == 0
    return lines[0], lines[-1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_held_out_margin_and_accuracy_rise(tmp_path, seed):
    first, last = heldout(run(recipe(tmp_path, seed=seed), METHODS["preference"], quiet()))
    assert first["heldout_margin"] == 0 and first["heldout_margin_accuracy"] == 0.5
    assert last["heldout_margin_low"] > 0 and last["heldout_margin_accuracy_low"] > 0.5


def test_adapters_learn_the_same_task_and_are_evaluated_without_a_merge(tmp_path):
    """C164: an adapter is saved alone; opening it gives the adapted network, whose outputs differ from the base's."""
    from dare_eval.networks import load_network

    settings = {"base": "tiny-countdown", "lora": {"rank": 8, "alpha": 16}}
    config = recipe(tmp_path, model=settings, optim={"lr": 5e-3, "schedule": "constant"})
    folder = run(config, METHODS["preference"], quiet())
    first, last = heldout(folder)
    assert first["heldout_margin"] == 0 and last["heldout_margin_low"] > 0
    saved = {path.name for path in folder.model.iterdir()}
    assert "model.safetensors" not in saved and {"adapter_model.safetensors", "config.json"} <= saved
    assert json.loads((folder.model / "adapter_config.json").read_text())["base_model_name_or_path"] == "tiny-countdown"
    ids = torch.randint(7, 100, (2, 12), generator=seeded(derive("ids")))
    base, adapted = (load_network(name)(ids) for name in ("tiny-countdown", str(folder.model)))
    assert float((base - adapted).abs().max()) > 0.1
    again = run(config, METHODS["preference"], quiet())
    assert again.finished


def test_block_networks_and_dropout_are_refused(tmp_path):
    with pytest.raises(UsageError, match="both directions"):
        run(recipe(tmp_path, model={"base": "tiny-bd-countdown"}), METHODS["preference"], quiet())
    dropout = {"base": "tiny-countdown", "lora": {"dropout": 0.1}}
    with pytest.raises(UsageError, match=r"model\.lora\.dropout"):
        run(recipe(tmp_path / "b", model=dropout), METHODS["preference"], quiet())


def test_wrong_names_are_answered(cli, root):
    config = root / "configs/train/vrpo_tiny_countdown.yaml"
    done = cli("dare-train", "preference", "--config", config, "--algo", "vpro")
    assert done.returncode == 2 and "did you mean 'vrpo'" in done.stderr
    shown = cli("dare-train", "preference", "--config", config, "--algo", "dpo", "--show-config")
    assert "algo: dpo" in shown.stdout
