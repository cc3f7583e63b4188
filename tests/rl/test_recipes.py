"""Committed recipes: each is valid on its network's published sizes and says where its values come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dare_train.follow_up import config_files
from dare_train.rl.algorithm import find_algorithm
from dare_train.rl.build import resolve
from dare_train.rl.compare import check_rows
from dare_train.rl.compare_config import CompareConfig
from dare_train.rl.compare_plan import plan_rows
from dare_train.rl.config import RlConfig
from dare_train.rl.defaults import SHIPPED
from dare_train.rl.task_settings import task_overrides, task_settings
from dare_train.settings import load_config, read_yaml, validate
from dare_train.setup import plan_here

TRAIN = Path(__file__).parents[2] / "configs" / "train"
RECIPES = sorted(path for path in TRAIN.glob("rl/*/*.yaml"))
MATRIX = {
    "llada_8b": {"d1", "coupled_grpo", "mdpo", "cj_grpo", "spg", "bgpo", "dtreerpo", "justgrpo", "espo"},
    "dream_7b": {"d1", "coupled_grpo", "mdpo", "cj_grpo", "spg", "bgpo", "dtreerpo"},
    "sdar_8b": {"cj_grpo", "bgpo", "ebpo"},
    "llada2_mini": {"cj_grpo", "bgpo", "ebpo"},
}
"""What the reference system has recipes for."""
BLOCK_ROWS = ["d1", "coupled_grpo", "cj_grpo", "spg", "bgpo", "ebpo", "dtreerpo", "espo", "elbo_grpo"]


def test_every_combination_of_the_reference_system_has_a_recipe():
    found = {}
    for path in RECIPES:
        found.setdefault(path.parent.name, set()).add(path.stem)
    assert all(found[family] >= wanted for family, wanted in MATRIX.items())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recipe_is_valid_without_its_weights_and_names_origins(path, root, monkeypatch):
    monkeypatch.chdir(root)
    config = load_config(RlConfig, path)
    network = plan_here(config.model)[0].config
    found = resolve(config, network)
    assert config.algo == path.stem == found.algorithm.name
    assert any(config.model.base in file.read_text() for file, _ in config_files(Path(config.evaluation.config)))
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if value.strip() and not line.startswith("#") and key.strip() not in ("output_dir", "algo", "base"):
            assert " # " in line, f"{line} does not say where its value comes from"


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("d1_llada_8b/compare.yaml", ["base", "sft", "d1", "sft+d1"]),
        ("d1_llada_8b/compare_tiny.yaml", ["base", "sft", "d1_dare", "sft+d1_dare"]),
        ("compare_llada_8b.yaml", ["base", "d1", "coupled_grpo", "vrpo", "cj_grpo", "spg", "bgpo"]),
        (
            "rl/compare_tiny_block.yaml",
            ["base", *BLOCK_ROWS],
        ),
        ("compare_dream_7b.yaml", ["base", "d1", "coupled_grpo", "cj_grpo", "spg", "bgpo"]),
    ],
)
def test_ready_made_comparisons_are_planned_without_weights(name, rows, root, monkeypatch):
    monkeypatch.chdir(root)
    path = TRAIN / name
    found = plan_rows(validate(CompareConfig, read_yaml(path)), path.parent)
    check_rows(found)
    assert [row.name for row in found] == rows
    assert len({(row.base, row.evaluation) for row in found}) == 1


TASKS = TRAIN / "rl" / "task_settings.yaml"


@pytest.mark.parametrize("task", ["gsm8k", "math", "code", "countdown", "sudoku"])
@pytest.mark.parametrize("family", sorted(MATRIX))
def test_recipes_have_settings_for_every_task(family, task, root, monkeypatch):
    monkeypatch.chdir(root)
    for path in [path for path in RECIPES if path.parent.name == family]:
        overrides = task_overrides(task, path, ["seed=5"])
        config = load_config(RlConfig, path, overrides)
        found = resolve(config, plan_here(config.model)[0].config)
        assert config.data.task == task and config.seed == 5 and found.algorithm.name == config.algo
        assert any(config.model.base in file.read_text() for file, _ in config_files(Path(config.evaluation.config)))
        for key in task_settings(task, plan_here(config.model)[0].config.family, config.algo):
            assert any(item.startswith(f"{key}=") for item in overrides)


def test_settings_of_tasks_name_their_origin_and_an_algorithm_that_exists():
    for line in TASKS.read_text().splitlines():
        key, _, value = line.partition(": ")
        assert line.startswith("#") or not value or key == "gsm8k" or " # " in value, line
    record = read_yaml(TASKS)
    families = {"every", "llada", "dream", "sdar", "llada2"}
    for part in {name for parts in record.values() for name in parts} - families:
        family, _, algo = part.rpartition("/")
        assert (not family or family in families) and find_algorithm(algo)
    espo = task_settings("countdown", "llada", "espo")
    assert espo["algorithm.objective.clip_low"] == 0.0 and espo["algorithm.kl.coef"] == 3e-3
    assert task_settings("countdown", "llada", "bgpo")["rollout.gen_length"] == 256
    assert "rollout.gen_length" not in task_settings("countdown", "llada", "d1"), "the authors' 256 stay"


def test_a_task_wants_a_recipe_and_a_name_that_is_known(cli):
    recipe = "configs/train/rl/llada_8b/spg.yaml"
    for arguments, said in (
        (["--task", "sudoku"], "without --config"),
        (["--task", "sudku", "--config", recipe], "did you mean 'sudoku'"),
        (["--task", "sudoku", "--config", "configs/train/rl/tiny_countdown.yaml"], "knows one task only"),
    ):
        done = cli("dare-train", "rl", *arguments, "--show-config")
        assert done.returncode == 2 and said in done.stderr
    shown = yaml.safe_load(cli("dare-train", "rl", "--task", "sudoku", "--config", recipe, "--show-config").stdout)
    assert shown["data"]["task"] == "sudoku" and shown["algorithm"]["reducer"]["beta"] == 1.0


SETTINGS = read_yaml(TRAIN / "rl" / "tiny_settings.yaml")


@pytest.mark.parametrize(("recipe", "algo"), [(name, algo) for name in SETTINGS for algo in SETTINGS[name]])
def test_settings_of_shipped_models_hold_for_their_algorithm(recipe, algo):
    """A name that no part has, or steps that end inside a rollout, would be told only to who runs it."""
    base = next(base for base, name in SHIPPED.items() if name == recipe)
    row = plan_rows(validate(CompareConfig, {"rows": [algo], "base": base, "evaluation": "x.py"}))[-1]
    found = row.stages[0].config(seed=0, folder=TRAIN, base=None)
    algorithm = resolve(found, plan_here(found.model)[0].config).algorithm
    assert found.optim.lr == SETTINGS[recipe][algo].get("optim.lr", 3e-4)
    assert found.train.max_steps % (algorithm.updates_per_rollout * algorithm.minibatches) == 0


def test_dry_run_of_a_published_model(cli):
    done = cli("dare-train", "rl", "--config", "configs/train/d1_llada_8b/rl.yaml", "--dry-run", "--nproc", 8)
    assert done.returncode == 0, done.stderr
    for part in ("nothing was trained", "not checked", "LLaDA-8B-Instruct", "per process of 8"):
        assert part in done.stdout
    compared = cli("dare-train", "compare", "--config", "configs/train/d1_llada_8b/compare.yaml", "--dry-run")
    assert compared.returncode == 0 and "sft (2500 steps) then d1" in compared.stdout
