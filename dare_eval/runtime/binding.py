"""Settings of a model that depend on the data set: presets become values, likelihood tasks get their own settings.

The preset table holds one row per model and benchmark; a model config that names a preset is bound to each data set
of the run when it is planned, so fingerprints, specs and reports always hold the values themselves. A bound config
has either decode settings or likelihood settings: those of the other kind do not decide the task's result.
"""

from __future__ import annotations

import copy
from typing import Any

from opencompass.registry import MODELS

from dare_eval.decoding.likelihood.options import warn_generation_only
from dare_eval.evaluators.benchmarks import benchmark_of, is_likelihood
from dare_eval.inferencers.likelihood import LikelihoodTask
from dare_eval.presets import bind, bind_likelihood
from dare_eval.runtime.dotted import resolve
from dare_eval.runtime.swapping import check_inferencer, ranking

_NOT_ABOUT_GENERATION = ("preset", "dtype", "engine")
_OTHERWISE_USED = ("cfg_scale", "block_length", "seed")
"""Decode settings that exist under ``likelihood`` too, but have to be given there."""


def bound_model(model_cfg: Any, dataset_cfg: Any) -> Any:
    """Return ``model_cfg`` with the settings that hold on ``dataset_cfg``; itself when nothing depends on that.

    Raises ``UsageError`` for an unknown preset, a preset on an unknown benchmark, wrong likelihood settings, and an
    inferencer that a native model cannot serve.
    """
    if getattr(resolve("model", model_cfg["type"], MODELS), "estimates_likelihood", False):
        check_inferencer(dataset_cfg)
        _check_likelihood(model_cfg.get("likelihood"))
        if is_likelihood(dataset_cfg):
            return _bound_likelihood(model_cfg, dataset_cfg)
    decoding = model_cfg.get("decoding") or {}
    if "preset" not in decoding and model_cfg.get("likelihood") is None:
        return model_cfg
    bound = copy.deepcopy(model_cfg)
    bound.pop("likelihood", None)
    if decoding:
        bound["decoding"] = bind(dict(decoding), _benchmark(dataset_cfg))
    return bound


def _check_likelihood(settings: Any) -> None:
    """Check likelihood settings on every data set: the model is built with them, whatever it is asked to do."""
    named = settings if not hasattr(settings, "items") else {k: v for k, v in settings.items() if k != "preset"}
    LikelihoodTask.build({} if named is None else named)


def bind_loaded(model: Any, model_cfg: Any, dataset_cfg: Any) -> None:
    """Give a loaded model the settings that hold on ``dataset_cfg``."""
    bound = bound_model(model_cfg, dataset_cfg)
    if bound is model_cfg:
        return
    if bound.get("likelihood") is not None:
        model.use_likelihood(bound["likelihood"])
    elif bound.get("decoding"):
        model.use_decoding(bound["decoding"])


def _bound_likelihood(model_cfg: Any, dataset_cfg: Any) -> Any:
    bound = copy.deepcopy(model_cfg)
    decoding = dict(bound.pop("decoding", None) or {})
    given = [key for key in decoding if key not in _NOT_ABOUT_GENERATION]
    warn_generation_only(f"{key} (of decoding)" if key in _OTHERWISE_USED else key for key in given)
    if "dtype" in decoding:  # the network is loaded in it
        bound["decoding"] = {"dtype": decoding["dtype"]}
    likelihood = dict(bound.get("likelihood") or {})
    settings = bind_likelihood(likelihood, decoding.get("preset"), _benchmark(dataset_cfg))
    bound["likelihood"] = LikelihoodTask.build({"rank_by": ranking(dataset_cfg), **settings}).to_dict()
    return bound


def _benchmark(dataset_cfg: Any) -> str | None:
    found = benchmark_of(dataset_cfg)
    return found.name if found else None
