"""Export: the weights of a checkpoint, whoever wrote it, as files that open like any model."""

from __future__ import annotations

import pytest
import torch

from dare_eval.errors import DataError, UsageError
from dare_eval.networks import load_network
from dare_train.algorithms.build import METHODS
from dare_train.engine.ema import Ema
from dare_train.export import export_checkpoint
from dare_train.run import run
from tests.train.conftest import same_weights, weights_of
from tests.train.test_loop import quiet, state_of
from tests.train.test_scorer import network

IDS = torch.tensor([[3, 7, 1, 9, 1, 4]])


def test_an_exported_checkpoint_is_the_model_of_that_step(config, tmp_path):
    folder = run(config(train={"max_steps": 4, "save_every": 2}), METHODS["sft"], quiet())
    newest = export_checkpoint(folder.path, tmp_path / "new" / "model")
    assert same_weights(weights_of(newest.parent), weights_of(folder.path))
    earlier = export_checkpoint(folder.path / "checkpoints" / "step_00000002", None)
    assert earlier == folder.path / "export" / "step_00000002"
    assert not torch.equal(load_network(str(earlier))(IDS), load_network(str(newest))(IDS))
    with pytest.raises(UsageError, match="exists already"):
        export_checkpoint(folder.path, newest)
    with pytest.raises(UsageError, match="no checkpoint here"):
        export_checkpoint(tmp_path / "new", None)


@pytest.mark.parametrize("damage", [b"", b"\x80\x04junk.", b"not a pickle at all"])
def test_a_damaged_checkpoint_is_named_and_nothing_is_written(config, tmp_path, damage):
    folder = run(config(), METHODS["sft"], quiet())
    (folder.checkpoint / ".metadata").write_bytes(damage)
    with pytest.raises(DataError, match="cannot be read") as caught:
        export_checkpoint(folder.path, tmp_path / "out")
    assert str(folder.checkpoint) in str(caught.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", [None, "", "a: 1", "seed: x\nmodel: {base: a}", "seed: 1\nmodel: [1]"])
def test_a_run_whose_settings_are_gone_is_named(config, tmp_path, text):
    folder = run(config(), METHODS["sft"], quiet())
    stored = folder.path / "config.yaml"
    stored.unlink() if text is None else stored.write_text(text)
    with pytest.raises(DataError, match="settings of the run cannot be read") as caught:
        export_checkpoint(folder.path, tmp_path / "out")
    assert str(stored) in str(caught.value)


def test_an_adapter_is_exported_alone_or_merged(config, tmp_path):
    base = run(config(), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model), "lora": {"rank": 4}}
    folder = run(config(output_dir=str(tmp_path / "lora"), model=model), METHODS["sft"], quiet())
    saved = sum(path.stat().st_size for path in folder.checkpoint.iterdir())
    whole = sum(path.stat().st_size for path in base.checkpoint.iterdir())
    assert saved != whole, "frozen weights are not saved again"
    alone, merged = (
        export_checkpoint(folder.path, tmp_path / "a"),
        export_checkpoint(folder.path, tmp_path / "m", merge=True),
    )
    assert not (alone / "model.safetensors").exists() and (merged / "model.safetensors").exists()
    expected = load_network(str(folder.model))(IDS)
    for place in (alone, merged):
        torch.testing.assert_close(load_network(str(place))(IDS), expected, rtol=1e-5, atol=1e-5)


def test_moving_average_lags_behind_and_is_what_is_exported(config, tmp_path):
    averaged = run(config(optim={"ema_decay": 0.9}), METHODS["sft"], quiet())
    plain = run(config(output_dir=str(tmp_path / "plain")), METHODS["sft"], quiet())
    start = state_of(config()).network(IDS)
    drift = [float((load_network(str(f.model))(IDS) - start).abs().mean().detach()) for f in (averaged, plain)]
    assert 0 < drift[0] < drift[1]
    exported = export_checkpoint(averaged.path, tmp_path / "x" / "model")
    assert same_weights(weights_of(exported.parent), weights_of(averaged.path))


def test_moving_average_follows_its_formula_and_gives_the_weights_back():
    net = network().float()
    average = Ema(net, 0.75)
    name, parameter = next(iter(net.named_parameters()))
    before = parameter.detach().clone()
    with torch.no_grad():
        parameter.add_(1.0)
    average.update(net)
    torch.testing.assert_close(average.shadow[name], before + 0.25)
    with average.applied(net):
        torch.testing.assert_close(parameter, before + 0.25)
    torch.testing.assert_close(parameter, before + 1.0)


def test_command_line(cli, config):
    folder = run(config(), METHODS["sft"], quiet())
    done = cli("dare-train", "export", folder.path)
    assert done.returncode == 0 and "step_00000004" in done.stdout
    named = cli("dare-train", "export", folder.checkpoint, "--out", folder.path / "elsewhere")
    assert named.returncode == 0 and (folder.path / "elsewhere" / "model.safetensors").is_file()
    missing = cli("dare-train", "export", folder.path / "nothing")
    assert missing.returncode == 2 and "no checkpoint here" in missing.stderr
