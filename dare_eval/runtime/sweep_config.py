"""The one OpenCompass config of a sweep: a model config per setting, the data sets in every template, what is skipped.

Each setting is a model with an abbr of its own (``tiny-sudoku@steps=8``), so predictions, fingerprints, reuse and the
report work as in any other run. A combination that cannot work on a data set is left out of it and listed with the
reason. Leaves out the numbers (``report.sweep``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.datasets.templates import with_templates
from dare_eval.errors import DataError, UsageError
from dare_eval.evaluators.benchmarks import is_likelihood
from dare_eval.runtime.binding import bound_model
from dare_eval.runtime.built import build
from dare_eval.runtime.data_paths import share_data_root
from dare_eval.runtime.plan import check_names, facts_of
from dare_eval.runtime.sweep_grid import Setting, Value, expand


@dataclass(frozen=True, slots=True)
class Skipped:
    """A combination that cannot work, and why."""

    label: str
    dataset: str
    reason: str
    remedy: str


@dataclass(slots=True)
class Sweep:
    """What will run: settings by abbr of their model, the pairs that work, and what is left out."""

    settings: dict[str, Setting] = field(default_factory=dict)
    models: list[Any] = field(default_factory=list)
    datasets: list[Any] = field(default_factory=list)
    combinations: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def plan_sweep(model_cfg: Any, dataset_cfgs: Sequence[Any], grid: Mapping[str, Sequence[Value]], count: int) -> Sweep:
    """Return what to run: every setting of ``grid`` on every data set in its first ``count`` templates.

    ``count`` 0 leaves the data sets as they are. Builds the data sets. Raises ``UsageError`` when nothing can work,
    and what the data and the checkpoint raise.
    """
    share_data_root()
    datasets = with_templates(dataset_cfgs, count) if count else list(dataset_cfgs)
    found = Sweep(datasets=[cfg for cfg in datasets if _generates(cfg)])
    if not found.datasets:
        raise UsageError("no data set of this config has answers that are decoded", remedy="use a *_gen data set")
    for dataset_cfg in found.datasets:
        build(dataset_cfg)
    name = model_abbr_from_cfg(model_cfg)
    for setting in expand(model_cfg.get("decoding") or {}, grid, _resolved(model_cfg, found.datasets[0])):
        candidate = copy.deepcopy(model_cfg)
        candidate["abbr"], candidate["decoding"] = f"{name}@{setting.label}", setting.decoding
        works = [cfg for cfg in found.datasets if _works(candidate, cfg, setting, found.skipped)]
        if works:
            found.settings[candidate["abbr"]] = setting
            found.models.append(candidate)
            found.combinations.append({"models": [candidate], "datasets": works})
    if not found.models:
        raise UsageError(
            "no setting of this sweep can work",
            seen="\n".join(f"{one.label}: {one.reason}" for one in found.skipped),
            remedy=found.skipped[0].remedy if found.skipped else "",
        )
    check_names(found.models, found.datasets)
    return found


def datasets_for(model_cfg: Any, cfg: Any) -> list[Any]:
    """Return the data sets of ``cfg`` for a model: those it is combined with, where the config says so."""
    name = model_abbr_from_cfg(model_cfg)
    combined = cfg.get("model_dataset_combinations") or ()
    chosen = [one for part in combined if name in map(model_abbr_from_cfg, part["models"]) for one in part["datasets"]]
    found = _once(chosen or cfg.get("datasets") or ())
    if not found:
        raise DataError("the config names no data sets", seen=sorted(cfg.keys()), remedy="define datasets = [...]")
    return found


def _once(dataset_cfgs: Iterable[Any]) -> list[Any]:
    return list({dataset_abbr_from_cfg(cfg): cfg for cfg in dataset_cfgs}.values())


def _works(model_cfg: Any, dataset_cfg: Any, setting: Setting, skipped: list[Skipped]) -> bool:
    """Check one pair without reading weights into memory; a setting that cannot work is noted and False."""
    try:
        facts_of(bound_model(model_cfg, dataset_cfg))
    except UsageError as error:
        skipped.append(Skipped(setting.label, dataset_abbr_from_cfg(dataset_cfg), error.what, error.remedy))
        return False
    return True


def _generates(dataset_cfg: Any) -> bool:
    return not is_likelihood(dataset_cfg)


def _resolved(model_cfg: Any, dataset_cfg: Any) -> dict[str, Any]:
    """Return the decode settings of the base as they are on a data set: a preset's values filled in."""
    return dict(bound_model(model_cfg, dataset_cfg).get("decoding") or {})
