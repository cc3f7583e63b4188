"""The one OpenCompass config of a noise measurement: every model of a config as it is, and once per changed setting.

Batch size, attention back end and dtype change one at a time. Each variation is a model with an abbr of its own
(``tiny-sudoku@dtype=bfloat16``), as in a sweep. Leaves out the numbers (``report.noise``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencompass.utils import model_abbr_from_cfg

from dare_eval.errors import UsageError
from dare_eval.runtime.sweep_config import datasets_for

BATCH, ATTENTION, DTYPE = "batch size", "attention", "dtype"
_KEYS = {BATCH: "batch_size", ATTENTION: "attn_backend", DTYPE: "dtype"}


@dataclass(frozen=True, slots=True)
class Variant:
    """A model of the run that is another one with one setting changed."""

    abbr: str
    base: str
    axis: str
    value: str


@dataclass(slots=True)
class Noise:
    """What will run."""

    models: list[Any] = field(default_factory=list)
    datasets: list[Any] = field(default_factory=list)
    combinations: list[dict[str, Any]] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)


def plan_noise(cfg: Any, axes: Mapping[str, Sequence[Any]]) -> Noise:
    """Return every model of ``cfg`` with its variations; raises ``UsageError`` when nothing varies."""
    found = Noise()
    for model_cfg in _models(cfg):
        base = model_abbr_from_cfg(model_cfg)
        group = [copy.deepcopy(model_cfg)]
        for axis, values in axes.items():
            for value in values:
                if value != _present(model_cfg, axis):
                    abbr = f"{base}@{_KEYS[axis]}={value}"
                    found.variants.append(Variant(abbr, base, axis, str(value)))
                    group.append(_changed(model_cfg, axis, value, abbr))
        datasets = datasets_for(model_cfg, cfg)
        found.models += group
        found.datasets += [one for one in datasets if one not in found.datasets]
        found.combinations.append({"models": group, "datasets": datasets})
    if not found.variants:
        raise UsageError(
            "nothing varies: every value given is the config's own",
            seen=dict(axes),
            remedy="--batch-sizes 1,64 or --dtypes bfloat16",
        )
    return found


def _models(cfg: Any) -> list[Any]:
    combined = [one for part in cfg.get("model_dataset_combinations") or () for one in part["models"]]
    return list({model_abbr_from_cfg(one): one for one in [*(cfg.get("models") or ()), *combined]}.values())


def _present(model_cfg: Any, axis: str) -> Any:
    if axis == DTYPE:
        return (model_cfg.get("decoding") or {}).get("dtype", "float32")
    return model_cfg.get(_KEYS[axis], "auto" if axis == ATTENTION else None)


def _changed(model_cfg: Any, axis: str, value: Any, abbr: str) -> Any:
    changed = copy.deepcopy(model_cfg)
    changed["abbr"] = abbr
    if axis == DTYPE:
        changed["decoding"] = {**(model_cfg.get("decoding") or {}), "dtype": value}
    else:
        changed[_KEYS[axis]] = value
    return changed
