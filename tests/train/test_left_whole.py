"""What other commands, other files and a full machine do to a run: it says so, and what was there stays."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import pytest
import torch
import yaml

from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.records import folder_lock
from dare_train.algorithms.build import METHODS
from dare_train.engine.checkpoint import checkpoints
from dare_train.exhausted import explained
from dare_train.run import run
from tests.train.conftest import same_weights, weights_of
from tests.train.test_loop import quiet

HOLD = """
import sys, time
from pathlib import Path
from dare_eval.records.folder_lock import hold
hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""
LIMITED = """
import resource, sys
from dare_train.cli import main
from dare_train import export
real = export._save_weights
def small(*arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    return real(*arguments)
export._save_weights = small
main()
"""


@pytest.fixture
def written(settings, tmp_path):
    """Return the path of a config file with changes."""

    def make(**changes):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(settings(**changes)))
        return path

    return make


@pytest.mark.parametrize("fresh", [False, True])
def test_a_second_command_in_the_folder_is_refused_and_moves_nothing(cli, written, config, tmp_path, fresh):
    run(config(train={"max_steps": 2}), METHODS["sft"], quiet())
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        done = cli("dare-train", "sft", "--config", written(), *(["--fresh"] if fresh else []))
        other.kill()
    assert done.returncode == 2 and "another command works" in done.stderr and "--output-dir" in done.stderr
    assert not list(tmp_path.glob("run.old-*"))
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == ["step_00000002"]
    assert cli("dare-train", "sft", "--config", written()).returncode == 0, "the lock went with its process"


def test_the_folder_is_given_back(config, tmp_path):
    folder = run(config(), METHODS["sft"], quiet())
    held = subprocess.run(
        [sys.executable, "-c", HOLD.replace("time.sleep(600)", ""), str(folder.path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert held.stdout == "held\n", held.stderr
    folder_lock.release(folder.path)


@pytest.mark.parametrize("place", ["rows.jsonl", "rows.jsonl/run", "n" * 300])
def test_a_place_that_cannot_be_a_folder_is_named(cli, written, tmp_path, place):
    done = cli("dare-train", "sft", "--config", written(), "--output-dir", tmp_path / place)
    assert done.returncode in (2, 5) and "Traceback" not in done.stderr
    assert "--output-dir" in done.stderr


def test_a_run_killed_while_it_exported_is_ended_by_the_same_command(config, tmp_path):
    folder = run(config(), METHODS["sft"], quiet())
    manifest = json.loads((folder.path / "manifest.json").read_text())
    (folder.path / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    stamp = (folder.checkpoint / ".metadata").stat().st_mtime_ns
    before = weights_of(folder.path)
    again = run(config(), METHODS["sft"], quiet())
    assert again.finished and same_weights(before, weights_of(again.path))
    assert (folder.checkpoint / ".metadata").stat().st_mtime_ns == stamp, "the last checkpoint is not written twice"
    assert json.loads((folder.path / "manifest.json").read_text())["status"] == "finished"


def test_other_rows_and_another_base_are_not_gone_on_with(config, rows_file, tmp_path):
    base = run(config(output_dir=str(tmp_path / "base")), METHODS["sft"], quiet())
    model = {"architecture": None, "tokenizer": None, "base": str(base.model)}
    changes = {"model": model, "output_dir": str(tmp_path / "child")}
    run(config(**changes, train={"max_steps": 2}), METHODS["sft"], quiet())
    rows = rows_file.read_text()
    rows_file.write_text(rows.replace("+", "-"))
    with pytest.raises(UsageError, match=r"training rows changed[\s\S]*content_hash[\s\S]*--fresh"):
        run(config(**changes), METHODS["sft"], quiet())
    rows_file.write_text(rows)
    run(config(output_dir=str(tmp_path / "base"), seed=9), METHODS["sft"], quiet(), fresh=True)
    with pytest.raises(UsageError, match="base checkpoint changed"):
        run(config(**changes), METHODS["sft"], quiet())


def test_a_shorter_run_is_not_taken_for_the_longer_one_that_is_there(config):
    run(config(), METHODS["sft"], quiet())
    with pytest.raises(UsageError, match=r"longer than asked for[\s\S]*4 steps, train.max_steps = 2"):
        run(config(train={"max_steps": 2}), METHODS["sft"], quiet())


@pytest.mark.parametrize("text", ["{}", "[]", '{"step": 4', '{"step": "x", "torch_rng": [1], "counters": {}}'])
def test_a_damaged_progress_file_is_named_with_what_to_remove(config, text):
    folder = run(config(), METHODS["sft"], quiet())
    (folder.checkpoint / "progress.json").write_text(text)
    with pytest.raises(DataError, match="progress"):
        run(config(train={"max_steps": 6}), METHODS["sft"], quiet())


def test_a_disk_that_fills_up_at_the_end_keeps_the_training(written, config, tmp_path):
    path = written()
    command = [sys.executable, "-c", LIMITED, "sft", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 5, done.stdout + done.stderr
    assert "finished model cannot be written" in done.stderr and "training is not repeated" in done.stderr
    assert not (tmp_path / "run" / "model").exists() and not (tmp_path / "run" / ".model.tmp").exists()
    folder = run(config(), METHODS["sft"], quiet())
    assert folder.finished and folder.checkpoint.name == "step_00000004"


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write its files: No space left"),
        (MemoryError(), "memory does not suffice"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), "micro_batch_size"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), "micro_batch_size"),
    ],
)
def test_an_exhausted_machine_is_told_with_what_helps(tmp_path, error, part):
    with pytest.raises(SetupError) as caught, explained(tmp_path):
        raise error
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(errno.ECONNREFUSED, "refused"), RuntimeError("shapes differ")]
)
def test_other_errors_pass_as_they_are(tmp_path, error):
    with pytest.raises(type(error)) as caught, explained(tmp_path):
        raise error
    assert caught.value is error
