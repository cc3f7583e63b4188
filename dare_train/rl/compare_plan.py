"""From the rows of a comparison to training configs: one per row, seed and stage, checked before anything runs.

Every run of a seed practises the same problems in the same order, since order follows from the seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dare_eval.errors import UsageError
from dare_train.config import VERBS, RunConfig
from dare_train.rl.algorithm import algorithm_names, find_algorithm
from dare_train.rl.compare_config import BASE, OTHER_STAGES, CompareConfig
from dare_train.rl.config import RlConfig
from dare_train.rl.defaults import SHIPPED, packaged, recipe_name, tuned
from dare_train.settings import apply_override, read_yaml, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One training of a row."""

    name: str
    verb: str
    record: dict[str, Any]
    """Settings without seed, folder and (after the first stage) base."""
    bounded: bool
    """The budget holds for it."""

    def config(self, *, seed: int, folder: Path, base: str | None, steps: int | None = None) -> RunConfig:
        """Return the settings of one run of the stage."""
        record = {**self.record, "seed": seed, "output_dir": str(folder)}
        if base is not None:
            record["model"] = {**record["model"], "base": base, "architecture": None}
        if steps is not None:
            record["train"] = {**record["train"], "max_steps": steps}
        return validate(VERBS[self.verb], record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table."""

    name: str
    stages: tuple[Stage, ...]
    base: str
    evaluation: str
    model_name: str


def plan_rows(config: CompareConfig, home: Path | None = None) -> list[Row]:
    """Return all rows, a ``base`` row for every base that is started from included.

    ``home`` is the folder of the comparison's own file: recipes may be named from there. Raises ``UsageError`` for an
    unknown stage, a missing recipe and settings that do not fit.
    """
    named = [_row(name, config, home) for name in config.rows if name != BASE]
    if not named:
        raise UsageError("there is nothing to compare the base with", remedy="name a stage, as in --algos sft,d1")
    origins = {row.base: row for row in named}
    shown = {base: f"{BASE} {base}" if len(origins) > 1 else BASE for base in origins}
    bases = [replace(row, name=shown[base], stages=()) for base, row in origins.items()]
    return [*bases, *named]


def locate(path: str, home: Path | None) -> str:
    """Return ``path`` as it can be opened: as it stands, from ``home``, or from the installation."""
    for place in (Path(path), *([home / path] if home else [])):
        if place.is_file():
            return str(place)
    parts = Path(path).parts
    return str(packaged(*parts[1:])) if parts[:1] == ("configs",) else path


def _row(name: str, config: CompareConfig, home: Path | None) -> Row:
    names = name.split("+")
    last = len(names) - 1
    stages = tuple(_stage(stage, config, home, bounded=place == last) for place, stage in enumerate(names))
    first = stages[0].record
    base = first["model"].get("base")
    if not base:
        raise UsageError(f"row '{name}' starts from no checkpoint", remedy="set base, or model.base in its recipe")
    wanted = config.evaluations.get(base) or config.evaluation or first.get("evaluation", {}).get("config")
    if not wanted:
        raise UsageError(f"row '{name}' has no evaluation", remedy="set evaluation to an OpenCompass config")
    given = config.model_name or first.get("evaluation", {}).get("model_name")
    return Row(name=name, stages=stages, base=base, evaluation=locate(wanted, home), model_name=given or base)


def _stage(name: str, config: CompareConfig, home: Path | None, *, bounded: bool) -> Stage:
    verb = OTHER_STAGES.get(name) or ("rl" if name in algorithm_names() else None)
    if verb is None:
        find_algorithm(name)  # says what is nearest
    recipe = Path(_recipe(name, str(verb), config, home))
    record = read_yaml(recipe)
    if verb != "sft":
        record["algo"] = name
    if config.base:
        record["model"] = {**record.get("model", {}), "base": config.base}
    # A recipe of our choice goes with the settings that were chosen for the algorithm on the shipped model.
    shipped = {} if _given(name, str(verb), config) else tuned(recipe.stem, name)
    shared = {**shipped, **(config.settings.get("rl", {}) if verb == "rl" else {})}
    for key, value in {**shared, **config.settings.get(name, {})}.items():
        apply_override(record, key, value)
    train = record.setdefault("train", {})
    train.setdefault("max_steps", 1)
    found = Stage(name=name, verb=str(verb), record=record, bounded=bounded and config.budget is not None)
    checked = found.config(seed=0, folder=Path("unused"), base=None)
    if bounded and config.budget and config.budget.currency == "rollout_tokens" and not isinstance(checked, RlConfig):
        raise UsageError(
            f"stage '{name}' makes no rollouts, so it cannot be given a budget of their tokens",
            allowed="cpu_seconds, seconds, forwards or steps",
        )
    return found


def _given(name: str, verb: str, config: CompareConfig) -> str | None:
    return config.recipes.get(name) or (config.recipes.get("rl") if verb == "rl" else None)


def _recipe(name: str, verb: str, config: CompareConfig, home: Path | None) -> str:
    given = _given(name, verb, config)
    if given:
        return locate(given, home)
    shipped = SHIPPED.get(config.base or "")
    if config.recipes or (config.base and not (shipped and verb == "rl")):
        raise UsageError(f"the comparison has no recipe for stage '{name}'", remedy=f"set recipes.{name}")
    if verb == "rl":
        return str(packaged("train", "rl", f"{shipped or recipe_name(name)}.yaml"))
    return str(packaged("train", *(("rl", "tiny_sft.yaml") if name == "sft" else ("vrpo_tiny_countdown.yaml",))))
