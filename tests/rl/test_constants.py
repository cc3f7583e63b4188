"""The constants that recipes show are those of the algorithms' files, on the networks they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dare_eval.errors import UsageError
from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.build import resolve
from dare_train.rl.config import RlConfig
from dare_train.settings import load_config
from dare_train.setup import plan_here

RECIPES = sorted(Path(__file__).parents[2].joinpath("configs", "train", "rl").glob("*/*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_constants_are_those_of_the_algorithm(path):
    config = load_config(RlConfig, path)
    own = find_algorithm(config.algo).resolve(plan_here(config.model)[0].config)
    assert config.algorithm, "a recipe shows the constants it trains with"
    assert own.with_settings(config.algorithm) == own


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_decides_the_update_is_shown(path):
    shown = yaml.safe_load(path.read_text())["algorithm"]
    algorithm = find_algorithm(path.stem)
    assert "updates_per_rollout" in shown and "loss_region" in shown
    assert ("objective" in shown) == algorithm.objective.uses_ratio
    assert ("kl" in shown) == (algorithm.kl.active or algorithm.name == "ebpo")
    assert ("distil" in shown) == (algorithm.distil is not None)


def test_rollouts_that_edit_tokens_have_no_step_map():
    path = next(path for path in RECIPES if (path.parent.name, path.stem) == ("llada2_mini", "cj_grpo"))
    network = plan_here(load_config(RlConfig, path).model)[0].config
    edited = ["rollout.decoding.edit_threshold=0.9"]
    with pytest.raises(UsageError, match="edited tokens have several"):
        resolve(load_config(RlConfig, path, edited), network)
    resolve(load_config(RlConfig, path.with_name("bgpo.yaml"), edited), network)
