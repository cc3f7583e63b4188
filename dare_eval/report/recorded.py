"""Recorded numbers that a run is judged against: another run, a file kept from one, or published cards.

``dare-eval report RUN --save FILE`` writes such a file; it holds numbers and settings, no items, so it can stand in
a repository and be compared in CI.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError, nearest
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.items import ItemRecord
from dare_eval.records.manifest import DatasetEntry
from dare_eval.records.run_rows import run_rows
from dare_eval.records.runs import Run
from dare_eval.records.shapes import FLAG, LIST, NUMBER, OBJECT, TEXT, WHOLE, Rules, check_shape
from dare_eval.records.summary import ResultRow, is_scored, read_report

KIND, VERSION = "dare-baseline", 1
UNEQUAL_ANYWAY = ("device", "attn_backend", "packages", "git", "batch_size", "model_id")
"""Settings of a run that belong to its environment or only name things."""
_KEYS = ("kind", "version", "name", "environment", "numbers")
_SETTINGS = frozenset((
    *(spec.name for spec in dataclasses.fields(DatasetEntry)), *UNEQUAL_ANYWAY,
    "task_template", "family", "weight_hash", "decode_spec", "seed",
))  # fmt: skip
"""Names that ``Run.settings`` gives."""
_TYPES: Rules = (
    (("model", "dataset", "metric", "source", "outcome", "called"), TEXT),
    (("value", "low", "high"), NUMBER),
    (("n", "decimals"), WHOLE),
    (("settings",), OBJECT),
    (("partial",), FLAG),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One number and what it was measured with, as far as its source says."""

    model: str
    dataset: str
    metric: str
    value: float
    """Percent."""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    decimals: int | None = None
    """Digits after the point that the source prints; None: all of them."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the source states, by the names of ``Run.settings``."""
    partial: bool = False
    """``decode_spec`` states what its source states and no more; other fields may have any value."""
    outcome: str | None = None
    """Hash of all verdicts (:func:`outcome_hash`)."""
    source: str = ""
    called: str | None = None
    """The model's name at the source, where ``model`` is that of the run that is judged (cards)."""

    @property
    def origin(self) -> str:
        """Return the name of the model that the number is of."""
        return self.called or self.model

    @property
    def key(self) -> tuple[str, str, str]:
        """Return model, data set and metric."""
        return self.model, self.dataset, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Recorded numbers with the environment they were measured in, where it is known."""

    name: str
    numbers: tuple[Recorded, ...]
    environment: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    """Every number must be in the run; False for a table of which a run reproduces a part."""


def baseline_of(run: Run) -> Baseline:
    """Return what ``run`` measured as recorded numbers."""
    outcomes = outcome_hashes(run)
    numbers = [
        Recorded(
            model=found.row.model,
            dataset=found.row.dataset,
            metric=found.row.metric,
            value=found.row.value,
            low=found.row.low,
            high=found.row.high,
            n=found.row.n,
            settings={key: value for key, value in found.settings.items() if key not in UNEQUAL_ANYWAY},
            outcome=outcomes.get((found.row.model, found.row.dataset)),
            source=f"run {run.run_id}",
        )
        for found in run_rows(run)
        if found.row.value is not None
    ]
    return Baseline(name=f"run {run.run_id}", numbers=tuple(numbers), environment=flat_environment(run))


def read_baseline(path: Path) -> Baseline:
    """Return the numbers in ``path``: a file :func:`write_baseline` wrote, or the rows of a ``report.json``.

    Raises ``DataError`` for anything else, and for a file of another version.
    """
    found = read_json(path, "baseline")
    if isinstance(found, list):
        rows = [row for row in read_report(path) if row.value is not None]
        return Baseline(name=path.name, numbers=tuple(_from_row(row, path.name) for row in rows))
    if not isinstance(found, dict) or found.get("kind") != KIND or found.get("version") != VERSION:
        raise DataError(
            "not a baseline this program reads",
            seen=path,
            allowed=f"a report.json, or a file of kind {KIND}, version {VERSION}",
            remedy="dare-eval report RUN --save FILE writes one",
        )
    check_shape(found, ((("numbers",), LIST), (("environment",), OBJECT), (("name",), TEXT)), "baseline")
    _refuse_others(found, _KEYS, f"baseline {path}")
    numbers = tuple(_number(entry) for entry in found.get("numbers") or ())
    known = {str(key): str(value) for key, value in (found.get("environment") or {}).items()}
    return Baseline(name=str(found.get("name") or path.name), numbers=numbers, environment=known)


def write_baseline(path: Path, baselines: Sequence[Baseline]) -> None:
    """Write the numbers of ``baselines`` to ``path``; of one number recorded twice the later one stays."""
    numbers = {number.key: dataclasses.asdict(number) for one in baselines for number in one.numbers}
    environment = {key: value for one in baselines for key, value in one.environment.items()}
    name = ", ".join(dict.fromkeys(one.name for one in baselines))
    record = {"kind": KIND, "version": VERSION, "name": name, "environment": environment}
    write_json(path, record | {"numbers": [numbers[key] for key in sorted(numbers)]})


def outcome_hashes(run: Run) -> dict[tuple[str, str], str]:
    """Return the hash of all verdicts by model and data set; results whose records cannot be read are left out."""
    found = {}
    for model, dataset in run.results():
        try:
            found[model, dataset] = outcome_hash(run.items(model, dataset).records)
        except DareError:  # the row of this result says that its records cannot be read
            continue
    return found


def outcome_hash(records: Sequence[ItemRecord]) -> str:
    """Return a SHA-256 over item, verdict and credit of every scored item, in the order of their ids."""
    lines = sorted([one.item_id, bool(one.correct), one.value] for one in records if is_scored(one))
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def flat_environment(run: Run) -> dict[str, str]:
    """Return the run's environment, seeds and model settings by dotted name; empty without a manifest."""
    if run.manifest is None:
        return {}
    found: dict[str, str] = {}
    _flatten("", {key: v for key, v in run.manifest.environment.items() if key != "command"}, found)
    for model in run.manifest.models:
        left = ("abbr", "path", "type", "decoding", "likelihood")
        _flatten(f"model {model.name}", {key: v for key, v in model.config.items() if key not in left}, found)
    return found


def _flatten(prefix: str, value: Any, found: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _flatten(f"{prefix}.{key}" if prefix else str(key), value[key], found)
    elif value not in (None, ""):
        found[prefix] = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _from_row(row: ResultRow, source: str) -> Recorded:
    return Recorded(
        model=row.model,
        dataset=row.dataset,
        metric=row.metric,
        value=row.value or 0.0,
        low=row.low,
        high=row.high,
        n=row.n,
        settings={"decode_spec": row.decode_spec} if row.decode_spec else {},
        source=source,
    )


def _number(entry: Any) -> Recorded:
    check_shape(entry, _TYPES, "recorded number", needed=("model", "dataset", "metric", "value"))
    what = f"recorded number of {entry['model']} on {entry['dataset']}"
    _refuse_others(entry, {spec.name for spec in dataclasses.fields(Recorded)}, what)
    _refuse_others(entry.get("settings") or {}, _SETTINGS, f"settings of the {what}")
    return Recorded(**{key: value for key, value in entry.items() if value is not None})


def _refuse_others(record: Mapping[str, Any], known: Collection[str], what: str) -> None:
    """Raise ``DataError`` for a key that nobody reads: a mistyped one would loosen the check without a word."""
    odd = sorted(set(record) - set(known))
    if odd:
        hint = nearest(odd[0], known)
        raise DataError(
            f"{what}: unknown key '{odd[0]}'" + (f"; did you mean '{hint}'?" if hint else ""),
            seen=", ".join(odd),
            allowed=", ".join(sorted(known)),
            remedy="repair it, or dare-eval report RUN --save FILE writes a new one",
        )
