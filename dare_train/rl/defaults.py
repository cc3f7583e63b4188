"""What ``dare-train rl`` runs when no config is given: a shipped model, its problems, the same for every algorithm."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from dare_eval.errors import SetupError
from dare_train.rl.algorithm import find_algorithm

MASKED, BLOCK = "tiny_countdown", "tiny_bd_countdown"


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


def default_settings(algo: str, *, given: bool = False, eval_given: bool = False) -> list[str]:
    """Return the overrides of a default run: a folder of its own per algorithm, and its evaluation from anywhere."""
    name = recipe_name(algo)
    folder = [] if given else [f"output_dir=runs/train/rl_{name}_{algo}"]
    return folder + ([] if eval_given else [f"evaluation.config={packaged('eval', f'{name}.py')}"])
