"""Recipes of real models: every value has its origin, constants are the algorithm's own, a dry run accepts them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from dare_train.algorithms.build import METHODS
from dare_train.dry_run import dry_run
from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.build import resolve
from dare_train.rl.config import RlConfig
from dare_train.settings import load_config
from dare_train.setup import plan_here

RECIPES = Path(__file__).parents[2] / "configs" / "train" / "rl"
REFERENCE = {
    "llada_8b": ["d1", "coupled_grpo", "mdpo", "cj_grpo", "spg", "bgpo", "dtreerpo", "justgrpo", "espo", "elbo_grpo"],
    "dream_7b": ["d1", "coupled_grpo", "mdpo", "cj_grpo", "spg", "bgpo", "dtreerpo"],
    "sdar_8b": ["cj_grpo", "bgpo", "ebpo"],
    "llada2_mini": ["cj_grpo", "bgpo", "ebpo"],
}
NAMES = [f"{algo}_{family}" for family, algos in REFERENCE.items() for algo in algos]
FREE = ("output_dir", "algo", "base")


def read(name):
    return load_config(RlConfig, RECIPES / f"{name}.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_those_of_the_algorithm_on_that_network(name):
    config = read(name)
    network = plan_here(config.model)[0].config
    own = find_algorithm(config.algo).resolve(network)
    assert own.with_settings(config.algorithm) == own, "the recipe shows what the algorithm's file says"
    found = resolve(config, network)
    assert found.spec.family == network.family and found.algorithm == own


@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_its_origin_beside_it(name):
    for line in (RECIPES / f"{name}.yaml").read_text().splitlines():
        key, _, value = line.partition(":")
        if line.startswith("#") or not value.strip() or key.strip() in FREE:
            continue
        assert " # " in line, line


@pytest.mark.parametrize("name", NAMES)
def test_every_constant_that_a_paper_sets_is_shown(name):
    shown = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())["algorithm"]
    algorithm = find_algorithm(read(name).algo)
    assert "updates_per_rollout" in shown and {"clip_low", "clip_high"} <= set(shown.get("objective", {})) | (
        set() if algorithm.objective.uses_ratio else {"clip_low", "clip_high"}
    )
    assert ("kl" in shown) == (algorithm.kl.active or algorithm.name == "ebpo")
    assert ("distil" in shown) == (algorithm.distil is not None)


@pytest.mark.parametrize("name", ["d1_llada_8b", "coupled_grpo_dream_7b", "bgpo_sdar_8b", "ebpo_llada2_mini"])
def test_a_dry_run_accepts_it_without_weights(name):
    config = read(name)
    console = Console(width=200, record=True, file=io.StringIO())
    found = dry_run(config, METHODS["rl"], console, processes=8)
    assert found.parameters > 6e9
    assert "nothing was trained" in console.export_text()
