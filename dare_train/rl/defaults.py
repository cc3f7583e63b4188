"""What ``dare-train rl`` runs when no config is given: a shipped model, its problems, the same for every algorithm."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from dare_eval.errors import SetupError
from dare_train.rl.algorithm import find_algorithm
from dare_train.settings import read_yaml

MASKED, BLOCK = "tiny_countdown", "tiny_bd_countdown"
SHIPPED = {"tiny-countdown": MASKED, "tiny-bd-countdown": BLOCK}
"""Recipes of the shipped models."""


def recipe_name(algo: str) -> str:
    """Return the recipe of ``algo``: that of the masked model, or of the block model where only that is defined."""
    return BLOCK if "masked" in find_algorithm(algo).undefined else MASKED


def packaged(*parts: str) -> Path:
    """Return a file of ``configs`` as it was installed; raises ``SetupError`` when it is not there."""
    found = Path(str(resources.files("dare_eval").joinpath("configs", *parts)))
    if not found.is_file():
        raise SetupError("a file of the installation is missing", seen=found, remedy="install the package again")
    return found.resolve()


def default_recipe(algo: str) -> Path:
    """Return the config that ``algo`` trains with by default."""
    return packaged("train", "rl", f"{recipe_name(algo)}.yaml")


def default_comparison() -> Path:
    """Return the config of ``dare-train compare`` without one: rows are named on the command line."""
    return packaged("train", "rl", "compare_tiny.yaml")


def tuned(recipe: str, algo: str) -> dict[str, Any]:
    """Return the settings of ``algo`` on a shipped model, by dotted key, that were chosen on its validation split."""
    found: dict[str, Any] = read_yaml(packaged("train", "rl", "tiny_settings.yaml")).get(recipe, {}).get(algo, {})
    return found


def default_settings(algo: str, *, given: bool = False, eval_given: bool = False) -> list[str]:
    """Return the overrides of a default run: its algorithm's tuned settings, a folder of its own, its evaluation."""
    name = recipe_name(algo)
    settings = [f"{key}={json.dumps(value)}" for key, value in tuned(name, algo).items()]
    folder = [] if given else [f"output_dir=runs/train/rl_{name}_{algo}"]
    return settings + folder + ([] if eval_given else [f"evaluation.config={packaged('eval', f'{name}.py')}"])
