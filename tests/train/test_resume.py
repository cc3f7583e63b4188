"""A run that is stopped anywhere and started again ends as one that was not; what is on disk is whole."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from dare_eval.errors import DataError, UsageError
from dare_train.algorithms.build import METHODS
from dare_train.engine.checkpoint import checkpoints
from dare_train.engine.metrics import read_metrics
from dare_train.run import run
from tests.train.conftest import same_weights, stopped_after, weights_of
from tests.train.test_loop import quiet

LIMITED = """
import resource, sys
from dare_train.cli import main
from dare_train.engine import loop
real = loop.save_checkpoint
def small(folder, state):
    if state.step > 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    return real(folder, state)
loop.save_checkpoint = small
main()
"""


def straight(config, tmp_path, **changes):
    return weights_of(run(config(output_dir=str(tmp_path / "straight"), **changes), METHODS["sft"], quiet()).path)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_stopped_and_resumed_equals_straight(config, tmp_path, stop):
    """C162: some steps, stop, resume, the rest; weights are equal bit for bit."""
    changes = {"optim": {"schedule": "cosine", "warmup_steps": 2}}
    with stopped_after(stop):
        run(config(**changes), METHODS["sft"], quiet())
    folder = run(config(**changes), METHODS["sft"], quiet())
    assert same_weights(weights_of(folder.path), straight(config, tmp_path, **changes))
    assert [line["step"] for line in read_metrics(folder.path / "metrics.jsonl")] == [1, 2, 3, 4]


def test_same_seed_gives_the_same_weights_and_another_seed_others(config, tmp_path):
    first = straight(config, tmp_path)
    again = run(config(output_dir=str(tmp_path / "again")), METHODS["sft"], quiet())
    other = run(config(output_dir=str(tmp_path / "other"), seed=4), METHODS["sft"], quiet())
    assert same_weights(first, weights_of(again.path))
    assert not same_weights(first, weights_of(other.path))


def test_a_finished_run_is_not_repeated_and_fresh_keeps_the_old_one(config):
    folder = run(config(), METHODS["sft"], quiet())
    stamp = (folder.model / "model.safetensors").stat().st_mtime_ns
    assert run(config(), METHODS["sft"], quiet()).finished
    assert (folder.model / "model.safetensors").stat().st_mtime_ns == stamp
    fresh = run(config(), METHODS["sft"], quiet(), fresh=True)
    old = fresh.path.with_name("run.old-1")
    assert same_weights(weights_of(old), weights_of(fresh.path))


def test_a_longer_run_continues_and_other_settings_are_refused(config):
    run(config(), METHODS["sft"], quiet())
    longer = run(config(train={"max_steps": 6}), METHODS["sft"], quiet())
    assert longer.checkpoint.name == "step_00000006"
    with pytest.raises(UsageError, match="other settings") as caught:
        run(config(optim={"lr": 0.5}, seed=9), METHODS["sft"], quiet())
    assert "optim.lr" in str(caught.value) and "seed" in str(caught.value) and "--fresh" in str(caught.value)


def test_a_folder_that_is_no_run_is_refused(config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="not a training run"):
        run(config(), METHODS["sft"], quiet())


def test_a_full_disk_leaves_the_previous_checkpoint(settings, config, tmp_path, cli):
    changes = {"train": {"max_steps": 4, "save_every": 1}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(**changes)))
    command = [sys.executable, "-c", LIMITED, "sft", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 5, done.stdout + done.stderr
    assert "cannot be written" in done.stderr and "continues from step_00000002" in done.stderr
    folder = tmp_path / "run" / "checkpoints"
    assert [p.name for p in folder.iterdir()] == ["step_00000001", "step_00000002"]
    again = cli("dare-train", "sft", "--config", path)
    assert again.returncode == 0 and "continuing after step 2" in again.stdout
    assert same_weights(weights_of(tmp_path / "run"), straight(config, tmp_path, **changes))


def test_a_damaged_checkpoint_is_named(config):
    folder = run(config(), METHODS["sft"], quiet())
    data = next(folder.checkpoint.glob("*.distcp"))
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(DataError, match="cannot be read") as caught:
        run(config(train={"max_steps": 6}), METHODS["sft"], quiet())
    assert str(folder.checkpoint) in str(caught.value)


def test_only_the_newest_checkpoints_are_kept(config):
    folder = run(config(train={"max_steps": 6, "save_every": 1, "keep_checkpoints": 2}), METHODS["sft"], quiet())
    assert [p.name for p in checkpoints(folder.path / "checkpoints")] == ["step_00000005", "step_00000006"]
