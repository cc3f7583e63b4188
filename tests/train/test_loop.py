"""The loop: splitting a batch changes nothing, learning rates are what they say, nothing non-finite is stepped on."""

from __future__ import annotations

import io
import json
import math

import pytest
import torch
from rich.console import Console

from dare_eval.errors import IncompleteError
from dare_train.algorithms.build import METHODS, build_sft
from dare_train.config import OptimSettings
from dare_train.engine.loop import train, train_step
from dare_train.engine.metrics import MetricsFile, read_metrics
from dare_train.engine.optim import learning_rate
from dare_train.engine.world import World
from dare_train.run import build_state, prepare, run
from tests.train.conftest import weights_of


def quiet():
    return Console(file=io.StringIO())


def state_of(config):
    prepared = prepare(config, METHODS["sft"])
    return build_state(prepared, build_sft(prepared))


def gradients(config, tmp_path):
    state = state_of(config)
    for part in state.algorithm.work(0):
        state.algorithm.backward(state.network, part)
    return {name: p.grad.clone() for name, p in state.network.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("preset", ["llada", "d1", "uniform", "dream", "llada_dare"])
@pytest.mark.parametrize("micro", [1, 2, 5])
def test_splitting_a_batch_never_changes_the_gradient(config, tmp_path, preset, micro):
    changes = {"objective": {"preset": preset}, "model": {"dtype": "float64"}}
    whole = gradients(config(**changes), tmp_path)
    split = gradients(config(**changes, train={"micro_batch_size": micro}), tmp_path)
    assert whole.keys() == split.keys()
    for name in whole:
        torch.testing.assert_close(split[name], whole[name], rtol=1e-9, atol=1e-13)


def test_processes_share_the_global_batch(config):
    prepared = prepare(config(), METHODS["sft"])
    whole = build_sft(prepared).batch(2)
    shares = [build_sft(prepared) for _ in range(2)]
    found = []
    for rank, method in enumerate(shares):
        method.world = World(rank, 2)
        found.append(method.batch(2))
    assert sorted(found[0].keys + found[1].keys) == list(whole.keys)
    noised = build_sft(prepared).corrupt(whole, "noise")
    for share, method in zip(found, shares, strict=True):
        part = method.corrupt(share, "noise")
        for row, key in enumerate(share.keys):
            place = whole.keys.index(key)
            width = share.ids_BT.shape[1]
            assert torch.equal(part.noisy_BT[row], noised.noisy_BT[place, :width])


@pytest.mark.parametrize(
    ("schedule", "steps", "expected"),
    [
        ("constant", (0, 1, 2, 9), (0.5, 1.0, 1.0, 1.0)),
        ("linear", (0, 1, 2, 6, 10), (0.5, 1.0, 1.0, 0.55, 0.1)),
        ("cosine", (2, 6, 10), (1.0, 0.55, 0.1)),
    ],
)
def test_learning_rate(schedule, steps, expected):
    settings = OptimSettings(lr=1.0, schedule=schedule, warmup_steps=2, min_lr_frac=0.1)
    assert [learning_rate(step, settings, 10) for step in steps] == pytest.approx(list(expected))


def test_decay_spares_norms_and_biases(config):
    state = state_of(config(optim={"weight_decay": 0.5}))
    decays = {p.ndim: group["weight_decay"] for group in state.optimizer.param_groups for p in group["params"]}
    assert decays == {2: 0.5, 1: 0.0}


def test_a_run_stops_by_itself_saves_and_records_what_it_spent(config, tmp_path):
    """C165: three steps over rows that never end: three steps are run and saved."""
    folder = run(config(train={"max_steps": 3}), METHODS["sft"], quiet())
    assert folder.finished and folder.checkpoint.name == "step_00000003"
    lines = read_metrics(folder.path / "metrics.jsonl")
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert {"loss", "lr", "grad_norm", "tokens_per_s", "masked"} <= lines[0].keys()
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["status"] == "finished" and manifest["kind"] == "training"
    assert manifest["budget"]["optimizer_steps"] == 3 and manifest["budget"]["prompts"] == 18
    entry = manifest["models"][0]
    assert entry["algorithm"] == "sft" and len(entry["weight_hash"]) == 64
    assert entry["config"]["resolved_method"]["preset"] == "llada"
    assert len(manifest["data"]["content_hash"]) == 64


def test_the_loss_falls(config):
    folder = run(config(train={"max_steps": 60}), METHODS["sft"], quiet())
    losses = [line["loss"] for line in read_metrics(folder.path / "metrics.jsonl")]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_the_batch_saved_and_the_weights_untouched(config, tmp_path, broken):
    state = state_of(config())
    before = {name: p.detach().clone() for name, p in state.network.named_parameters()}
    real = state.algorithm.work

    def spoiled(step):
        parts = real(step)
        for part in parts:
            part.weight_BT.mul_(broken)
        return parts

    state.algorithm.work = spoiled
    with pytest.raises(IncompleteError, match="not finite at step 0") as caught:
        train_step(state, config(), tmp_path)
    assert all(torch.equal(before[name], p) for name, p in state.network.named_parameters())
    saved = list((tmp_path / "failures").iterdir())
    assert str(saved[0]) in str(caught.value)
    content = torch.load(saved[0])
    assert content["step"] == 0 and content["parts"][0]["ids_BT"].shape[0] == 6


def test_a_cosine_schedule_masks_more_of_the_same_rows(config):
    def masked(schedule):
        algorithm = state_of(config(objective={"schedule": schedule})).algorithm
        parts = [part for step in range(10) for part in algorithm.work(step)]
        assert all(bool((part.weight_BT[part.masked_BT] > 0).all()) for part in parts)
        return torch.stack([part.masked_BT.sum() for part in parts])

    linear, cosine = masked("linear"), masked("cosine")
    assert bool((cosine >= linear).all()) and int(cosine.sum()) > int(linear.sum())


def test_a_batch_that_cannot_be_saved_does_not_hide_why_the_run_stopped(config, tmp_path):
    state = state_of(config())
    (tmp_path / "failures").write_text("in the way")
    with torch.no_grad():
        next(state.network.parameters()).fill_(math.nan)
    with pytest.raises(IncompleteError, match="not finite at step 0") as caught:
        train_step(state, config(), tmp_path)
    assert "could not be saved" in str(caught.value)


def test_metrics_after_the_resumed_step_are_dropped_and_half_lines_forgiven(tmp_path):
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    for step in (1, 2, 3):
        metrics.append({"step": step, "loss": math.nan if step == 2 else 1 / 3})
    with path.open("a") as stream:
        stream.write('{"step":4,"lo')
    kept = MetricsFile(path, keep_until=2)
    kept.append({"step": 3, "loss": 0.5})
    assert read_metrics(path) == [{"step": 1, "loss": 0.33333333}, {"step": 2, "loss": None}, {"step": 3, "loss": 0.5}]


def test_training_leaves_the_global_random_state_alone(config):
    before = torch.get_rng_state()
    run(config(), METHODS["sft"], quiet())
    assert torch.equal(before, torch.get_rng_state())


def test_evaluation_folder_has_the_original_keys_and_the_tokenizer(config):
    folder = run(config(train={"max_steps": 1}), METHODS["sft"], quiet())
    assert {"model.transformer.wte.weight", "model.transformer.wpe.weight"} <= weights_of(folder.path).keys()
    from dare_eval.networks import load_network
    from dare_train.setup import load_tokenizer

    network = load_network(str(folder.model))
    assert network.config.mask_id == load_tokenizer(str(folder.model)).mask_token_id == 1
    train_config = json.loads((folder.model / "config.json").read_text())
    assert train_config["learned_positions"] == 64


def test_nothing_is_trained_when_the_loop_has_nothing_to_do(config, tmp_path):
    state = state_of(config())
    state.step = 4
    train(state, config(), tmp_path, quiet())
    assert (tmp_path / "checkpoints" / "step_00000004").is_dir()
