"""Fingerprints: predictions are reused only when nothing that decides them has changed, results likewise.

A prediction depends on the model config and its weights, the decode spec, the prompt template, the data, package
versions and the code that decodes; not on GPU count, batch size or names. A result depends on that and on the
evaluator's config and the scoring code. The settings are stored beside the fingerprint, so a mismatch can be
explained.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import dare_eval
from dare_eval.errors import DataError, SetupError
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.provenance import file_sha256, package_versions
from dare_eval.runtime.built import content_hash, examples_hash, prompts_hash
from dare_eval.runtime.dotted import resolve
from dare_eval.runtime.model_facts import ModelFacts

SUFFIX = ".fingerprint"
PACKAGES = ("dare", "opencompass", "torch", "transformers", "tokenizers", "datasets", "sglang", "lmdeploy")
_NOT_MODEL = ("run_cfg", "batch_size", "abbr", "summarizer_abbr", "pred_postprocessor")
_NOT_DATASET = ("infer_cfg", "eval_cfg", "abbr", "path", "k")
_DECODING_CODE = ("networks", "decoding", "models", "inferencers", "spec.py")
_SCORING_CODE = ("scoring", "evaluators", "puzzles")


def prediction_settings(
    model_cfg: Mapping[str, Any], facts: ModelFacts, dataset_cfg: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything that decides the predictions of one model on one data set, JSON-ready."""
    infer_cfg = plain(dataset_cfg["infer_cfg"])
    infer_cfg.get("inferencer", {}).pop("batch_size", None)
    return {
        "model": plain({key: value for key, value in model_cfg.items() if key not in _NOT_MODEL}),
        "weights": facts.weight_hash,
        "decoding": facts.decode_spec,
        "dataset": plain({key: value for key, value in dataset_cfg.items() if key not in _NOT_DATASET}),
        "prompt": infer_cfg,
        "items": content_hash(dataset_cfg),
        "rows": prompts_hash(dataset_cfg),
        "examples": examples_hash(dataset_cfg),
        "packages": package_versions(PACKAGES),
        "code": code_hash(_DECODING_CODE),
    }


def result_settings(
    predictions: Mapping[str, Any], model_cfg: Mapping[str, Any], dataset_cfg: Mapping[str, Any], scorer: str
) -> dict[str, Any]:
    """Return everything that decides a result, given the settings of its predictions."""
    eval_cfg = plain(dataset_cfg.get("eval_cfg", {}))
    return {
        "predictions": digest(predictions),
        "evaluation": eval_cfg,
        "postprocessor": plain(model_cfg.get("pred_postprocessor")),
        "k": dataset_cfg.get("k", 1),
        "scorer": scorer,
        "evaluator_source": _source_hash(eval_cfg.get("evaluator", {}).get("type")),
        "code": code_hash(_SCORING_CODE),
    }


def digest(settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of ``settings``: 16 hex digits of the SHA-256 of its canonical JSON form."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_sidecar(output: Path, settings: Mapping[str, Any], notes: Mapping[str, Any] | None = None) -> None:
    """Store ``settings`` (and ``notes``, which are not part of the fingerprint) beside the output file ``output``."""
    write_json(sidecar(output), {"fingerprint": digest(settings), "settings": settings, "notes": notes or {}})


def read_sidecar(output: Path) -> dict[str, Any]:
    """Return ``{"fingerprint", "settings", "notes"}`` of ``output``; empty ones when there is none."""
    empty: dict[str, Any] = {"fingerprint": "", "settings": {}, "notes": {}}
    try:
        found = read_json(sidecar(output), "fingerprint")
    except DataError:  # an output of unknown origin: never reused
        return empty
    return {**empty, **found} if isinstance(found, dict) else empty


def sidecar(output: Path) -> Path:
    """Return the path of the fingerprint beside ``output``."""
    return output.with_name(output.name.removesuffix(".json") + SUFFIX)


def differences(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Yield one line per setting that differs: ``model.decoding.threshold: None -> 0.9``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            yield from differences(old.get(key), new.get(key), f"{at}.{key}".lstrip("."))
    elif plain(old) != plain(new):
        yield f"{at}: {_short(old)} -> {_short(new)}"


def plain(value: Any) -> Any:
    """Return a config value as JSON would give it back."""
    return json.loads(json.dumps(value, default=str))


@cache
def code_hash(parts: tuple[str, ...]) -> str:
    """Return the SHA-256 over the Python files of some parts of this package."""
    root = Path(dare_eval.__file__).parent
    named = [root / part for part in parts]
    files = sorted(file for place in named for file in ([place] if place.is_file() else place.rglob("*.py")))
    text = "".join(f"{file.relative_to(root)} {file_sha256(file)}\n" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()


def _source_hash(evaluator: Any) -> str:
    """Return the hash of the file that defines an evaluator class; empty when it cannot be found."""
    from opencompass.registry import ICL_EVALUATORS

    try:
        place = inspect.getsourcefile(resolve("evaluator", evaluator, ICL_EVALUATORS))
    except (TypeError, SetupError):  # not a Python class, or absent: scoring reports that, its config tells it apart
        place = None
    return file_sha256(Path(place)) if place else ""


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
