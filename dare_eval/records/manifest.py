"""Run manifest: ``manifest.json`` beside a run's results, saying what ran, with what, where and at what cost.

One manifest serves evaluation runs (several models and data sets) and training runs (one model, no data sets).
It is rewritten in one step as a run goes on. Leaves out the scores: they are recomputed from item records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import locked, read_json, write_json
from dare_eval.records.ledger import Budget
from dare_eval.records.shapes import LIST, OBJECT, TEXT, WHOLE, Rules, check_objects, check_shape

MANIFEST_VERSION = 1
MANIFEST_NAME = "manifest.json"

_RUN_TYPES: Rules = (
    (("run_id", "kind", "status", "started", "finished"), TEXT),
    (("models", "datasets"), LIST),
    (("seeds", "config", "data", "environment", "budget"), OBJECT),
)
_MODEL_TYPES: Rules = (
    (("name", "model_id", "family", "weight_hash", "parent", "parent_hash", "algorithm"), TEXT),
    (("config", "decode_specs"), OBJECT),
)
_DATASET_TYPES: Rules = (
    (
        ("name", "dataset", "split", "prompt_hash", "content_hash", "template", "scorer", "metric", "graded_metric"),
        TEXT,
    ),
    (("expected", "max_out_len"), WHOLE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model of a run."""

    name: str
    """Name in tables and folders (OpenCompass ``abbr``)."""
    model_id: str = ""
    """Hub id or path as given."""
    family: str = ""
    """Model family; empty for replayed or remote models."""
    weight_hash: str | None = None
    """SHA-256 of weights and config (:func:`records.provenance.weight_hash`)."""
    parent: str | None = None
    """Name of the checkpoint this one was trained from."""
    parent_hash: str | None = None
    """Weight hash of the parent."""
    algorithm: str | None = None
    """Training algorithm that made it."""
    config: dict[str, Any] = field(default_factory=dict)
    """Resolved settings of the model wrapper or of the training run."""
    decode_specs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``DecodeSpec.to_dict()`` by data set; recorded or remote models give what they know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetEntry:
    """One data set of a run; whatever differs here makes two scores different measurements."""

    name: str
    """Name in tables and folders (OpenCompass ``abbr``)."""
    dataset: str = ""
    """Name that goes into item ids; equal for all variants of one data set."""
    split: str = ""
    """Split that was read."""
    prompt_hash: str | None = None
    """OpenCompass' prompt hash of the data set config."""
    content_hash: str | None = None
    """SHA-256 over the items, in order."""
    template: str | None = None
    """Name of the task template, where several exist."""
    scorer: str | None = None
    """Scorer and its version, as ``gsm8k@1``."""
    metric: str = "accuracy"
    """Name of the share of right answers, such as ``accuracy`` or ``exact``."""
    graded_metric: str | None = None
    """Name of the mean graded credit, such as ``cell``, where the scorer grades."""
    expected: int | None = None
    """Number of items, repeats included."""
    subset: str | None = None
    """Which part of the whole data set was evaluated; None for all of it."""
    max_out_len: int | None = None
    """Longest response asked for, in tokens, where the decode spec does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """Everything needed to say what a run was; see :func:`write_manifest`."""

    run_id: str
    """Unique name; evaluation runs use ``<work dir name>/<timestamp>``."""
    kind: str
    """``evaluation`` or ``training``."""
    status: str = "running"
    """``running``, ``finished``, ``incomplete`` or ``failed``."""
    models: tuple[ModelEntry, ...] = ()
    datasets: tuple[DatasetEntry, ...] = ()
    seeds: dict[str, int] = field(default_factory=dict)
    """Every seed by its purpose."""
    config: dict[str, Any] = field(default_factory=dict)
    """Resolved configuration of the run."""
    data: dict[str, Any] = field(default_factory=dict)
    """Training data: names, hashes and overlap with evaluation items."""
    environment: dict[str, Any] = field(default_factory=dict)
    """See :func:`records.provenance.environment`."""
    started: str | None = None
    """UTC, ISO 8601."""
    finished: str | None = None
    """UTC, ISO 8601."""
    budget: Budget = field(default_factory=Budget)
    extra: dict[str, Any] = field(default_factory=dict)
    """Entries of other writers, kept as they came."""

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready values."""
        record = dataclasses.asdict(self)
        extra = record.pop("extra")
        return {**extra, **record, "version": MANIFEST_VERSION}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunManifest:
        """Return the manifest that :meth:`to_dict` stored; ``DataError`` for an unknown version or a wrong shape."""
        check_shape(record, (), "run manifest")
        if record.get("version") != MANIFEST_VERSION:
            seen = record.get("version")
            raise DataError("run manifest of an unknown version", seen=seen, allowed=str(MANIFEST_VERSION))
        check_shape(record, _RUN_TYPES, "run manifest", needed=("run_id", "kind"))
        names = {spec.name for spec in dataclasses.fields(cls)} - {"extra"}
        own = {key: value for key, value in record.items() if key in names and value is not None}
        extra = {key: value for key, value in record.items() if key not in names and key != "version"}
        own["models"] = tuple(_model(entry) for entry in own.get("models", ()))
        own["datasets"] = tuple(_dataset(entry) for entry in own.get("datasets", ()))
        own["budget"] = Budget.from_dict(own.get("budget", {}))
        return cls(**own, extra=extra)

    def model(self, name: str) -> ModelEntry | None:
        """Return the entry of a model, or None."""
        return next((entry for entry in self.models if entry.name == name), None)

    def dataset(self, name: str) -> DatasetEntry | None:
        """Return the entry of a data set, or None."""
        return next((entry for entry in self.datasets if entry.name == name), None)


def _model(record: Any) -> ModelEntry:
    check_shape(record, _MODEL_TYPES, "model entry of the run manifest", needed=("name",))
    check_objects(record.get("decode_specs") or {}, "decode specs of the run manifest")
    return ModelEntry(**_known(ModelEntry, record))


def _dataset(record: Any) -> DatasetEntry:
    check_shape(record, _DATASET_TYPES, "data set entry of the run manifest", needed=("name",))
    return DatasetEntry(**_known(DatasetEntry, record))


def _known(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``record`` that ``kind`` has; a newer writer may add others, and null means the default."""
    names = {spec.name for spec in dataclasses.fields(kind)}
    return {key: value for key, value in record.items() if key in names and value is not None}


def write_manifest(folder: Path, manifest: RunManifest) -> Path:
    """Write ``manifest`` into ``folder`` in one step and return its path."""
    path = folder / MANIFEST_NAME
    write_json(path, manifest.to_dict())
    return path


def read_manifest(folder: Path) -> RunManifest:
    """Return the manifest in ``folder``; raises ``DataError`` when missing, damaged or of an unknown version."""
    path = folder / MANIFEST_NAME
    record = read_json(path, "run manifest")
    try:
        return RunManifest.from_dict(record)
    except DataError as error:
        raise DataError(error.what, seen=f"{path}: {error.seen}", allowed=error.allowed, remedy=error.remedy) from None


def update_manifest(folder: Path, change: Callable[[RunManifest], RunManifest]) -> RunManifest:
    """Apply ``change`` to the manifest in ``folder`` while no other process does, and return the result."""
    with locked(folder / MANIFEST_NAME):
        manifest = change(read_manifest(folder))
        write_manifest(folder, manifest)
    return manifest


def now() -> str:
    """Return the present moment as the manifest stores it (UTC, seconds)."""
    return datetime.now(UTC).isoformat(timespec="seconds")
