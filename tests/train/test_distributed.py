"""Two processes on gloo do what one does: same losses, checkpoints that either continues, one exported model."""

from __future__ import annotations

import pytest
import torch
import yaml

from dare_train.algorithms.build import METHODS
from dare_train.config import VERBS
from dare_train.engine.checkpoint import checkpoints
from dare_train.engine.metrics import read_metrics
from dare_train.run import run
from dare_train.settings import validate
from tests.train.conftest import weights_of
from tests.train.test_loop import quiet

pytestmark = pytest.mark.xdist_group("processes")
STEPS = 20


@pytest.fixture
def train(cli, settings, tmp_path):
    """Train in so many processes and return the folder; changes are nested settings."""

    def start(name, processes, verb="sft", **changes):
        folder = tmp_path / name
        record = settings(output_dir=str(folder), **changes)
        if processes == 1:
            return run(validate(VERBS[verb], record), METHODS[verb], quiet()).path
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(record))
        arguments = [verb, "--config", path, "--nproc", processes]
        done = cli("dare-train", *arguments, env={"OMP_NUM_THREADS": "1"}, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    return start


def losses(folder):
    return [line["loss"] for line in read_metrics(folder / "metrics.jsonl")]


def close(left, right):
    ours, theirs = weights_of(left), weights_of(right)
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours)


@pytest.mark.parametrize("strategy", ["fsdp2", "ddp"])
def test_two_processes_equal_one(train, strategy):
    changes = {"train": {"max_steps": STEPS}, "optim": {"lr": 1e-3}}
    alone = train("alone", 1, **changes)
    both = train("both", 2, **{**changes, "train": {"max_steps": STEPS, "strategy": strategy}})
    assert len(losses(both)) == STEPS
    assert losses(both) == pytest.approx(losses(alone), abs=1e-6)
    assert close(alone, both) < 1e-5


def test_a_run_goes_on_with_another_number_of_processes(train):
    changes = {"optim": {"lr": 1e-3, "schedule": "constant"}}
    straight = train("straight", 1, train={"max_steps": 9}, **changes)
    train("moved", 2, train={"max_steps": 3}, **changes)
    train("moved", 1, train={"max_steps": 6}, **changes)
    moved = train("moved", 2, train={"max_steps": 9}, **changes)
    assert [line["step"] for line in read_metrics(moved / "metrics.jsonl")] == list(range(1, 10))
    assert losses(moved) == pytest.approx(losses(straight), abs=1e-6)
    assert checkpoints(moved / "checkpoints")[-1].name == "step_00000009"
    assert close(straight, moved) < 1e-5


@pytest.mark.parametrize("lora", [None, {"rank": 4}], ids=["whole", "adapter"])
def test_preference_training_in_two_processes(train, lora):
    common = {
        "model": {"architecture": None, "tokenizer": None, "base": "tiny-countdown", "lora": lora},
        "data": {"train": "puzzles/countdown_pairs[sft:50,validation:9]", "end_of_turn": False},
        "train": {"max_steps": 3, "batch_size": 4, "micro_batch_size": 1},
        "optim": {"lr": 1e-3},
    }
    alone, both = (train(f"run{n}", n, "preference", **common) for n in (1, 2))
    assert losses_of(both) == pytest.approx(losses_of(alone), abs=1e-5)


def losses_of(folder):
    lines = read_metrics(folder / "metrics.jsonl")
    names = ("loss", "margin", "heldout_margin", "heldout_n")
    return [line[name] for line in lines for name in names if name in line]


def test_a_failure_in_several_processes_is_one_message_and_a_non_zero_exit(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(train={"batch_size": 7})))
    done = cli("dare-train", "sft", "--config", path, "--nproc", 2)
    assert done.returncode == 3 and done.stderr.count("not a multiple of the number of processes") == 1
    assert torch.get_num_threads() == 1
