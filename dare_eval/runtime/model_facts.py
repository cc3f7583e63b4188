"""What a model wrapper tells the runtime about a model config before anything runs.

A wrapper may offer the class method ``facts(settings) -> ModelFacts``: it checks the settings and the small files
(config, tokenizer, recordings), reads no weights, and raises ``DareError`` when something cannot work. A
``UsageError`` refuses the whole run; any other error fails this model only. Wrappers without the method (upstream's)
are described by the files behind their ``path``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError
from dare_eval.records.provenance import file_sha256, weight_hash

STRIPPED = (
    "run_cfg", "max_out_len", "batch_size", "abbr", "summarizer_abbr", "pred_postprocessor", "min_out_len", "type",
)  # fmt: skip
"""Keys that OpenCompass takes out of a model config before it calls the constructor."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model before it is loaded."""

    model_id: str = ""
    """Path, hub id or file as given."""
    family: str = ""
    """Model family; empty for replayed and remote models."""
    weight_hash: str | None = None
    """SHA-256 of what decides the answers: weights and config, or the recordings."""
    decode_spec: dict[str, Any] = field(default_factory=dict)
    """``DecodeSpec.to_dict()``, or what is known of how recorded answers were made."""
    folder: str = ""
    """Checkpoint folder on this machine, where there is one; its manifest names parent and algorithm."""


def settings_of(model_cfg: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``model_cfg`` that reach the constructor."""
    return {key: value for key, value in model_cfg.items() if key not in STRIPPED}


def describe(cls: type, model_cfg: Mapping[str, Any]) -> ModelFacts:
    """Return the facts of ``model_cfg`` built as ``cls``; raises what ``cls.facts`` raises."""
    facts = getattr(cls, "facts", None)
    if facts is not None:
        found: ModelFacts = facts(settings_of(model_cfg))
        return found
    path = str(model_cfg.get("path", ""))
    return ModelFacts(model_id=path, weight_hash=_hash_of(path))


def _hash_of(path: str) -> str | None:
    place = Path(path).expanduser()
    try:
        if place.is_file():
            return file_sha256(place)
        return weight_hash(place) if place.is_dir() else None
    except (DataError, OSError):  # a folder without safetensors: upstream's wrapper knows what it is
        return None


__all__ = ["STRIPPED", "DareError", "ModelFacts", "describe", "settings_of"]
