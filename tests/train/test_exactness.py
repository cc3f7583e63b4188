"""What may not change a run: recomputed layers, half precision, noise of dropout; and what must stop it."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import pytest
import torch
import yaml
from pydantic import ValidationError

from dare_eval.errors import SetupError, UsageError
from dare_train.algorithms.build import METHODS
from dare_train.config import ModelSettings, TrainSettings
from dare_train.engine.checkpoint import checkpoints
from dare_train.engine.loop import train_step
from dare_train.engine.noise import step_noise
from dare_train.engine.sharding import check_strategy
from dare_train.engine.world import World
from dare_train.run import prepare, run
from tests.train.conftest import same_weights, weights_of
from tests.train.test_loop import gradients, quiet, state_of


@pytest.mark.parametrize("blocks", [False, True])
def test_recomputing_layers_gives_the_same_gradients(config, blocks):
    changes = {"model": {"architecture": {"block_size": 4}}, "objective": {"preset": "bd3lm"}} if blocks else {}
    plain = gradients(config(**changes), None)
    again = gradients(config(**changes, train={"gradient_checkpointing": True}), None)
    assert plain.keys() == again.keys() and all(torch.equal(plain[name], again[name]) for name in plain)


def test_half_precision_keeps_weights_and_moments_whole_and_stays_near(config, tmp_path):
    whole, half = config(), config(train={"precision": "bf16"})
    states = [state_of(settings) for settings in (whole, half)]
    numbers = [train_step(state, settings, tmp_path) for state, settings in zip(states, (whole, half), strict=True)]
    assert numbers[1]["loss"] != numbers[0]["loss"]
    assert numbers[1]["loss"] == pytest.approx(numbers[0]["loss"], rel=0.02)
    assert all(p.dtype == torch.float32 for p in states[1].network.parameters())
    moments = [value for state in states[1].optimizer.state.values() for value in state.values() if value.ndim]
    assert moments and all(value.dtype == torch.float32 for value in moments)


def test_dropout_follows_the_step_and_leaves_the_global_stream_alone():
    before = torch.get_rng_state()

    def drawn(*place):
        with step_noise(*place, "cpu"):
            return torch.nn.functional.dropout(torch.ones(200), 0.5)

    first = drawn(1, 5, 0)
    assert torch.equal(first, drawn(1, 5, 0))
    assert not any(torch.equal(first, drawn(*place)) for place in ((1, 6, 0), (2, 5, 0), (1, 5, 1)))
    assert torch.equal(before, torch.get_rng_state())


def test_a_run_with_dropout_resumes_exactly_and_repeats(config, tmp_path):
    base = run(config(), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 4, "dropout": 0.3}}

    def weights(name, *stops):
        for steps in stops:
            torch.rand(3)  # whatever the global stream has been used for
            changes = {"optim": {"schedule": "constant"}, "train": {"max_steps": steps}, "model": model}
            folder = run(config(output_dir=str(tmp_path / name), **changes), METHODS["sft"], quiet())
        from safetensors.torch import load_file

        return load_file(folder.model / "adapter_model.safetensors")

    straight = weights("a", 6)
    assert same_weights(straight, weights("b", 2, 5, 6))
    assert not same_weights(straight, weights("c", 5))


def test_kill_9_at_random_moments_then_the_same_command(settings, config, tmp_path, cli, trainer):
    """Three kills, each a drawn time after a new checkpoint: inside a step, inside a save, wherever it falls."""
    changes = {"train": {"max_steps": 90, "save_every": 1}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(**changes)))
    command = ["dare-train", "sft", "--config", str(path)]
    folder, moments = tmp_path / "run" / "checkpoints", random.Random(1)
    for _ in range(3):
        known = {path.name for path in checkpoints(folder)}
        process, end_s = trainer.launch(tmp_path, *command), time.monotonic() + 120
        while not {path.name for path in checkpoints(folder)} - known:
            assert time.monotonic() < end_s, (tmp_path / "err").read_text()
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.15))
        os.kill(process, signal.SIGKILL)
        trainer.wait(process)
    done = cli(*command)
    assert done.returncode == 0 and "continuing after step" in done.stdout, done.stderr
    straight = run(config(output_dir=str(tmp_path / "straight"), **changes), METHODS["sft"], quiet())
    assert same_weights(weights_of(tmp_path / "run"), weights_of(straight.path))
    assert not [path for path in folder.iterdir() if path.name.startswith(".")], "no half checkpoint is left"


def test_a_loss_that_stops_being_finite_ends_the_command_with_the_batch_saved(settings, tmp_path, cli):
    path = tmp_path / "config.yaml"
    broken = {"optim": {"lr": 1e30, "clip_norm": None}, "train": {"max_steps": 20}}
    path.write_text(yaml.safe_dump(settings(**broken)))
    done = cli("dare-train", "sft", "--config", path, env={"COLUMNS": "200"})
    assert done.returncode == 3 and "not finite at step" in done.stderr and "look at the batch" in done.stderr
    (saved,) = (tmp_path / "run" / "failures").iterdir()
    assert str(saved.name) in done.stderr and torch.load(saved)["parts"]


def test_four_bits_without_the_package_are_refused_before_rows_and_weights(settings, tmp_path, monkeypatch, config):
    base = run(config(), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 4}}
    changes = {"model": {**model, "quantize": "4bit"}, "output_dir": str(tmp_path / "four")}
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(SetupError, match="needs the package bitsandbytes") as caught:
        prepare(config(**changes), METHODS["sft"])
    assert caught.value.exit_code == 5 and "dare[quant]" in str(caught.value)
    assert not (tmp_path / "four").exists()


def test_the_option_for_four_bits(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    done = cli("dare-train", "sft", "--config", path, "--quantize", "4bit", "--dry-run")
    assert done.returncode == 2 and "model.quantize needs model.lora" in done.stderr


def test_four_bits_are_not_sharded_and_not_trained():
    model = ModelSettings(base="x", lora={"rank": 2}, quantize="4bit")
    check_strategy(model, TrainSettings(max_steps=1, strategy="ddp"), World(0, 2))
    check_strategy(model, TrainSettings(max_steps=1), World())
    with pytest.raises(UsageError, match=r"train\.strategy=ddp"):
        check_strategy(model, TrainSettings(max_steps=1), World(0, 2))
    with pytest.raises(ValidationError, match=r"needs model\.lora"):
        ModelSettings(base="x", quantize="4bit")
    with pytest.raises(UsageError, match="a divisor of 6"):
        check_strategy(ModelSettings(base="x"), TrainSettings(max_steps=1, shard_size=4), World(0, 6))


def test_an_adapter_over_four_bits_learns(config, tmp_path):
    pytest.importorskip("bitsandbytes", reason="extra 'quant' is not installed")
    base = run(config(), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 4}, "quantize": "4bit"}
    folder = run(config(output_dir=str(tmp_path / "four"), model=model), METHODS["sft"], quiet())
    assert (folder.model / "adapter_model.safetensors").is_file()
