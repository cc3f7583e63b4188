"""Which model config a name on the command line means: a model of the config, one of the preset table, a checkpoint."""

from __future__ import annotations

import copy
from importlib import resources
from pathlib import Path
from typing import Any

from dare_eval.commands.run_config import load_config
from dare_eval.errors import unknown
from dare_eval.presets import entry, models

WRAPPERS = {
    "llada": "dare_eval.models.llada.LLaDAModel",
    "llada_moe": "dare_eval.models.llada.LLaDAModel",
    "dream": "dare_eval.models.dream.DreamModel",
    "sdar": "dare_eval.models.sdar.SDARModel",
    "sdar_moe": "dare_eval.models.sdar.SDARModel",
    "llada2": "dare_eval.models.llada2.LLaDA2Model",
}


def base_model(name: str, cfg: Any) -> Any:
    """Return the model config that ``name`` means: a model of ``cfg``, one of the preset table, or a checkpoint.

    A checkpoint takes the decode settings of the config's first model and the wrapper of its own family. Raises
    ``UsageError`` or ``DataError`` when there is no such model.
    """
    from opencompass.utils import model_abbr_from_cfg

    own = list(cfg.get("models") or ())
    for model_cfg in own:
        if name in (model_abbr_from_cfg(model_cfg), model_cfg.get("path")):
            return copy.deepcopy(model_cfg)
    if name in models():
        place = Path(str(resources.files("dare_eval").joinpath("configs", "models")))
        return load_config(place / (entry(name)["config"].replace(".", "/") + ".py"))["models"][0]
    from dare_eval.networks import read_config, resolve_model_path

    family = read_config(resolve_model_path(name)).family
    if family not in WRAPPERS:
        raise unknown("model family with a wrapper", family, WRAPPERS, remedy="name a model of the config instead")
    first = copy.deepcopy(own[0]) if own else {}
    kept = {key: first[key] for key in ("decoding", "batch_size", "run_cfg", "long_prompts") if key in first}
    wrapper = first["type"] if own and _family_of(first) == family else WRAPPERS[family]
    return {"type": wrapper, "abbr": name.rstrip("/").rpartition("/")[2], "path": name, "batch_size": 8, **kept}


def _family_of(model_cfg: Any) -> str:
    from opencompass.registry import MODELS

    from dare_eval.runtime.dotted import resolve

    return str(getattr(resolve("model", model_cfg["type"], MODELS), "family", ""))
