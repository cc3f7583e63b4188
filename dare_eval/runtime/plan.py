"""One model on one data set, as planned: settings, items and fingerprints; and the checks of a whole config.

Everything is computed once per process tree and inherited by forked workers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencompass.registry import MODELS
from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.errors import DareError, SetupError, UsageError
from dare_eval.inferencers.rows import Row
from dare_eval.runtime.binding import bound_model
from dare_eval.runtime.built import rows_of
from dare_eval.runtime.dotted import resolve
from dare_eval.runtime.fingerprint import prediction_settings, result_settings
from dare_eval.runtime.model_facts import ModelFacts, describe
from dare_eval.runtime.sidecars import digest
from dare_eval.spec.checks import is_count

SCORERS = ("dare", "upstream", "both")
_FACTS: dict[str, ModelFacts] = {}
_PAIRS: dict[str, Pair] = {}


@dataclass(frozen=True, slots=True)
class Pair:
    """One model on one data set."""

    model: str
    dataset: str
    facts: ModelFacts
    rows: list[Row]
    settings: dict[str, Any]
    """What decides the predictions."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the predictions."""
        return digest(self.settings)

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"{self.model}/{self.dataset}"

    def target(self, root: str | Path) -> Path:
        """Return the pair's output file below ``root`` (the predictions or results folder)."""
        return Path(root) / self.model / f"{self.dataset}.json"


def plan_pair(model_cfg: Any, dataset_cfg: Any) -> Pair:
    """Return the plan of one pair; raises ``DareError`` when the model or the data set cannot work."""
    key = _key(model_cfg, dataset_cfg)
    if key not in _PAIRS:
        try:
            _PAIRS[key] = _planned(model_cfg, dataset_cfg)
        except DareError:
            raise
        except Exception as error:  # of a wrapper or a loader: this pair cannot run, the others can
            raise SetupError(
                f"planning raised {type(error).__name__}: {error}",
                remedy="the traceback stands in the run's failures folder; repair the model or data set it names",
            ) from error
    return _PAIRS[key]


def _planned(model_cfg: Any, dataset_cfg: Any) -> Pair:
    bound = bound_model(model_cfg, dataset_cfg)
    facts = facts_of(bound)
    settings = prediction_settings(bound, facts, dataset_cfg)
    names = model_abbr_from_cfg(model_cfg), dataset_abbr_from_cfg(dataset_cfg)
    return Pair(*names, facts, rows_of(dataset_cfg), settings)


def facts_of(model_cfg: Any) -> ModelFacts:
    """Return what is known of a model before it is loaded; raises ``DareError`` when it cannot work."""
    key = _key(model_cfg)
    if key not in _FACTS:
        _check_batch_size(model_cfg)
        _FACTS[key] = describe(resolve("model", model_cfg["type"], MODELS), model_cfg)
    return _FACTS[key]


def _check_batch_size(model_cfg: Any) -> None:
    size = model_cfg.get("batch_size")
    if size is not None and not is_count(size):
        raise UsageError(f"batch_size is out of range: {size!r}", seen=size, allowed="an integer above 0")


def score_settings(pair: Pair, model_cfg: Any, dataset_cfg: Any, scorer: str) -> dict[str, Any]:
    """Return what decides the result of ``pair``."""
    return result_settings(pair.settings, model_cfg, dataset_cfg, scorer)


def check_scorer(scorer: str) -> str:
    """Return ``scorer`` if it is one of ``dare``, ``upstream``, ``both``; raises ``UsageError`` otherwise."""
    from dare_eval.errors import unknown

    if scorer not in SCORERS:
        raise unknown("scorer", scorer, SCORERS, remedy="set scorer in eval.runner.task")
    return scorer


def check_names(model_cfgs: Iterable[Any], dataset_cfgs: Iterable[Any]) -> None:
    """Refuse two configurations under one name, and names that collide with the parts of another data set.

    Raises ``UsageError``: predictions are files named by abbr, so one of the two would silently win.
    """
    models = [model_abbr_from_cfg(cfg) for cfg in model_cfgs]
    datasets = [dataset_abbr_from_cfg(cfg) for cfg in dataset_cfgs]
    for kind, names in (("models", models), ("data sets", datasets)):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise UsageError(
                f"two {kind} of this config are called '{twice[0]}'",
                seen=", ".join(twice),
                remedy="give each its own abbr: files and table rows are named by it",
            )
        odd = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
        if odd:
            raise UsageError(f"an abbr of {kind} leaves the run folder", seen=odd[0], remedy="use a plain name")
    for name in datasets:
        stem = re.sub(r"_\d+$", "", name)
        if stem != name and stem in datasets:
            raise UsageError(
                f"data set '{name}' has the name of a part of data set '{stem}'",
                seen=f"{stem}, {name}",
                remedy=f"rename one of them, for example to '{stem}-{name.removeprefix(stem + '_')}'",
            )


def check_combinations(combinations: Iterable[Any]) -> None:
    """Refuse names that collide within or across ``model_dataset_combinations``; raises ``UsageError``."""
    models: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    for combination in combinations:
        check_names(combination["models"], combination["datasets"])
        for model_cfg in combination["models"]:
            name = model_abbr_from_cfg(model_cfg)
            if models.setdefault(name, _key(model_cfg)) != _key(model_cfg):
                raise UsageError(
                    f"two different models of this config are called '{name}'",
                    seen=name,
                    remedy="give each its own abbr: files and table rows are named by it",
                )
            for dataset_cfg in combination["datasets"]:
                pair = (name, dataset_abbr_from_cfg(dataset_cfg))
                if pair in pairs:
                    raise UsageError("a model meets a data set twice", seen="/".join(pair), remedy="name the pair once")
                pairs.add(pair)


def _key(*configs: Any) -> str:
    return json.dumps(configs, sort_keys=True, default=str)
