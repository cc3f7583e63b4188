"""Settings: every field is described, mistakes are named with their remedy, files resolve to the same record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from dare_eval.errors import UsageError
from dare_train.config import LoraSettings, PreferenceConfig, PretrainConfig, SftConfig
from dare_train.rl.config import RlConfig
from dare_train.settings import load_config, to_yaml, validate

RECIPES = sorted(Path(__file__).parents[2].joinpath("configs/train").glob("[!c]*.yaml"))
"""Recipes of this folder; those of reinforcement learning and comparisons have tests of their own."""


def sections(kind: type[BaseModel]) -> list[type[BaseModel]]:
    found = [kind]
    for field in kind.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += sections(field.annotation)
    return found


VERBS = (PretrainConfig, SftConfig, PreferenceConfig)
KINDS = [*dict.fromkeys(part for verb in VERBS for part in sections(verb)), LoraSettings]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_setting_says_what_it_is_and_in_which_unit(kind):
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            continue
        assert field.description, f"{kind.__name__}.{name} has no description"
        extra = field.json_schema_extra
        assert isinstance(extra, dict) and "unit" in extra, f"{kind.__name__}.{name} has no unit"
        if field.annotation in (int, float) and name != "seed":
            assert extra["unit"], f"{kind.__name__}.{name} is a number without a unit"


def test_settings_are_frozen(config):
    with pytest.raises(ValidationError):
        config().seed = 4


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("train.max_step=3", ["max_step'", "train.max_steps"]),
        ("trian.max_steps=3", ["trian", "did you mean 'train'"]),
        ("train.max_steps=0", ["train.max_steps", "greater than or equal to 1"]),
        ("optim.lr=fast", ["optim.lr", "number"]),
        ("optim.schedule=cosin", ["optim.schedule", "cosine"]),
        ("model.base=tiny-sudoku", ["exactly one of model.base and model.architecture"]),
        ("train.max_steps", ["a.b=value"]),
        ("seed.value=3", ["'seed'", "is a value"]),
        ("optim.lr=[1", ["not valid YAML"]),
        ("optim.lr=2024-99-99", ["not valid YAML", "month"]),
        ("train.max_steps=true", ["train.max_steps", "got the switch true"]),
        ("model.lora.targets=3", ["'model.lora.targets'", "all-linear"]),
        ("optim.lr=.nan", ["optim.lr", "finite number"]),
        ("optim.lr=.inf", ["optim.lr", "finite number"]),
        ("optim.clip_norm=.nan", ["optim.clip_norm"]),
        ("optim.betas=[0.9, 1.5]", ["optim.betas", "less than 1"]),
        ("optim.betas=[-1, 0.9]", ["optim.betas", "greater than or equal to 0"]),
        ("objective.schedule=cosin", ["objective.schedule", "cosine"]),
    ],
)
def test_a_mistake_is_named(settings, tmp_path, override, parts):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    with pytest.raises(UsageError) as caught:
        load_config(SftConfig, path, [override])
    for part in parts:
        assert part in str(caught.value)


def test_a_missing_setting_is_named(settings):
    record = settings()
    del record["train"]["max_steps"]
    with pytest.raises(UsageError, match=r"'train.max_steps' is missing"):
        validate(SftConfig, record)


@pytest.mark.parametrize("text", ["- 1", "a: [", "\x00"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UsageError):
        load_config(SftConfig, path)


def test_overrides_win_and_the_resolved_file_gives_the_same_settings(settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    first = load_config(SftConfig, path, ["optim.betas=[0.8, 0.9]", "train.max_steps=7", "evaluation.config=x.py"])
    assert (first.optim.betas, first.train.max_steps, first.evaluation.config) == ((0.8, 0.9), 7, "x.py")
    path.write_text(to_yaml(first))
    assert load_config(SftConfig, path) == first


def test_numbers_may_be_written_with_an_exponent(settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()) + "seed: 1e1\n")
    found = load_config(SftConfig, path, ["optim.lr=1e-4", "train.max_steps=1e3"])
    assert (found.seed, found.optim.lr, found.train.max_steps) == (10, 1e-4, 1000)
    recipe = RECIPES[0].parent / "rl" / "tiny_countdown.yaml"
    constants = load_config(RlConfig, recipe, ["algorithm.kl.coef=1e-3", "algorithm.epochs=010"]).algorithm
    assert constants["kl"] == {"coef": 1e-3} and constants["epochs"] == 10


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_committed_recipe_is_valid_and_names_files_that_exist(path):
    config = load_config(PreferenceConfig if "algo:" in path.read_text() else SftConfig, path)
    assert json.loads(config.model_dump_json())
    if config.evaluation.config:
        assert Path(__file__).parents[2].joinpath(config.evaluation.config).is_file()
