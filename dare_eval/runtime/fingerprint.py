"""Fingerprints: predictions are reused only when nothing that decides them has changed, results likewise.

A prediction depends on the model config and its weights, the decode spec, the prompt template, the data, package
versions and the code that decodes; not on GPU count, batch size or names. A result depends on that and on the
evaluator's config and the scoring code. The settings are stored beside the fingerprint, so a mismatch can be
explained.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opencompass.registry import ICL_EVALUATORS, MODELS, TEXT_POSTPROCESSORS

import dare_eval
from dare_eval.errors import SetupError
from dare_eval.records.provenance import file_sha256, package_versions
from dare_eval.runtime.built import content_hash, examples_hash, prompts_hash
from dare_eval.runtime.dotted import resolve
from dare_eval.runtime.model_facts import ModelFacts
from dare_eval.runtime.sidecars import digest, plain

PACKAGES = ("dare", "opencompass", "torch", "transformers", "tokenizers", "datasets", "sglang", "lmdeploy")
_NOT_MODEL = ("run_cfg", "batch_size", "abbr", "summarizer_abbr", "pred_postprocessor")
_NOT_DATASET = ("infer_cfg", "eval_cfg", "abbr", "path", "k")
_DECODING_CODE = ("networks", "decoding", "models", "inferencers", "spec")
_TOKENIZER = re.compile(
    r"(tokenizer|chat_template|special_tokens|added_tokens|vocab|merges).*\.(json|jinja|model|txt)$"
)
_SCORING_CODE = ("scoring", "evaluators", "puzzles")


def prediction_settings(
    model_cfg: Mapping[str, Any], facts: ModelFacts, dataset_cfg: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything that decides the predictions of one model on one data set, JSON-ready."""
    infer_cfg = plain(dataset_cfg["infer_cfg"])
    infer_cfg.get("inferencer", {}).pop("batch_size", None)
    model = plain({key: value for key, value in model_cfg.items() if key not in _NOT_MODEL})
    (model.get("likelihood") or {}).pop("batch_size", None)
    return {
        "model": model,
        "weights": facts.weight_hash,
        "tokenizer": _tokenizer_hash(facts.folder),
        "decoding": facts.decode_spec,
        "dataset": plain({key: value for key, value in dataset_cfg.items() if key not in _NOT_DATASET}),
        "prompt": infer_cfg,
        "items": content_hash(dataset_cfg),
        "rows": prompts_hash(dataset_cfg),
        "examples": examples_hash(dataset_cfg),
        "packages": package_versions(PACKAGES),
        "model_source": _source_hash("model", model_cfg.get("type"), MODELS),
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
        "evaluator_source": _source_hash("evaluator", eval_cfg.get("evaluator", {}).get("type"), ICL_EVALUATORS),
        "postprocessor_sources": [
            _source_hash("postprocessor", (cleaner or {}).get("type"), TEXT_POSTPROCESSORS)
            for cleaner in (
                eval_cfg.get("pred_postprocessor"),
                eval_cfg.get("dataset_postprocessor"),
                model_cfg.get("pred_postprocessor"),
            )
        ],
        "code": code_hash(_SCORING_CODE),
    }


@cache
def code_hash(parts: tuple[str, ...]) -> str:
    """Return the SHA-256 over the Python files of some parts of this package."""
    root = Path(dare_eval.__file__).parent
    named = [root / part for part in parts]
    files = sorted(file for place in named for file in ([place] if place.is_file() else place.rglob("*.py")))
    text = "".join(f"{file.relative_to(root)} {file_sha256(file)}\n" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()


def _tokenizer_hash(folder: str) -> str:
    """Return the hash over the small files of a checkpoint that turn prompts into ids; empty without a folder."""
    files = [file for file in sorted(Path(folder).iterdir()) if _TOKENIZER.match(file.name)] if folder else []
    return hashlib.sha256("".join(f"{file.name} {file_sha256(file)}\n" for file in files).encode()).hexdigest()


def _source_hash(kind: str, target: Any, registry: Any) -> str:
    """Return the hash of the file that defines a class or function; empty when it cannot be found."""
    try:
        place = inspect.getsourcefile(resolve(kind, target, registry)) if target else None
    except (TypeError, SetupError):  # not made of Python, or absent: its use reports that, its config tells it apart
        place = None
    return file_sha256(Path(place)) if place else ""
