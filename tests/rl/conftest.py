"""A small network for rollouts and the settings of a run that takes seconds."""

from __future__ import annotations

from typing import Any

import pytest

from dare_eval.networks import load_network
from dare_train.config import ModelSettings
from dare_train.rl.config import RlConfig, TaskSettings
from dare_train.rl.problems import read_problems
from dare_train.settings import validate
from dare_train.setup import plan_model
from tests.train.conftest import merged, one_thread, own_store

__all__ = ["merged", "one_thread", "own_store"]


@pytest.fixture(scope="session")
def tiny():
    """The shipped Countdown model: network, plan and 12 problems."""
    plan = plan_model(ModelSettings(base="tiny-countdown"))
    rows = read_problems(plan, TaskSettings(task="countdown", train="puzzles/countdown[rl_tuning:12]"))
    return load_network("tiny-countdown"), plan, list(rows.kept)


@pytest.fixture(scope="session")
def tiny_blocks():
    """The shipped block-diffusion Countdown model."""
    plan = plan_model(ModelSettings(base="tiny-bd-countdown"))
    rows = read_problems(plan, TaskSettings(task="countdown", train="puzzles/countdown[rl_tuning:12]"))
    return load_network("tiny-bd-countdown"), plan, list(rows.kept)


BASE: dict[str, Any] = {
    "seed": 3,
    "algo": "cj_grpo",
    "model": {"base": "tiny-countdown"},
    "data": {"task": "countdown", "train": "puzzles/countdown[rl_tuning:40,validation:12]"},
    "rollout": {"group_size": 4, "gen_length": 5, "block_length": 5, "policy": "quota", "steps": 3, "cache": "none"},
    "reward": {"workers": 0},
    "optim": {"lr": 3e-4, "schedule": "constant"},
    "train": {"max_steps": 4, "batch_size": 4, "threads": 1, "log_every": 1},
}
BLOCKS: dict[str, Any] = {
    "algo": "ebpo",
    "model": {"base": "tiny-bd-countdown"},
    "rollout": {"gen_length": 8, "block_length": 4, "steps": 6},
}


@pytest.fixture
def rl_settings(tmp_path):
    """Return the settings of a short run as a mapping, with nested changes."""

    def make(**changes: Any) -> dict[str, Any]:
        return merged({"output_dir": str(tmp_path / "run"), **BASE}, changes)

    return make


@pytest.fixture
def rl_config(rl_settings):
    """Return the validated settings of a short run."""

    def make(**changes: Any) -> RlConfig:
        return validate(RlConfig, rl_settings(**changes))

    return make
