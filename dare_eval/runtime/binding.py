"""Settings of a model that depend on the data set: ``decoding=dict(preset=...)`` becomes that benchmark's settings.

The preset table holds one row per model and benchmark; a model config that names a preset is bound to each data set
of the run when it is planned, so fingerprints, specs and reports always hold the values themselves.
"""

from __future__ import annotations

import copy
from typing import Any

from dare_eval.evaluators.benchmarks import benchmark_of
from dare_eval.presets import bind


def bound_model(model_cfg: Any, dataset_cfg: Any) -> Any:
    """Return ``model_cfg`` with its preset replaced by the settings for ``dataset_cfg``; itself when it has none."""
    decoding = model_cfg.get("decoding")
    if not decoding or "preset" not in decoding:
        return model_cfg
    bound = copy.deepcopy(model_cfg)
    bound["decoding"] = bound_decoding(model_cfg, dataset_cfg)
    return bound


def bound_decoding(model_cfg: Any, dataset_cfg: Any) -> dict[str, Any]:
    """Return the decode settings of a model on a data set; raises ``UsageError`` for an unknown preset or benchmark."""
    benchmark = benchmark_of(dataset_cfg)
    return bind(dict(model_cfg["decoding"]), benchmark.name if benchmark else None)
