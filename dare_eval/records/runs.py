"""A finished run as a folder: finding it, its manifest, its item records and what is known about each result.

Reads what an evaluation left behind and changes nothing. A run without a readable manifest is still a run: what
is missing is said in ``problems``. Folders made by plain OpenCompass are read by ``records.foreign``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError
from dare_eval.records.atomic import read_json
from dare_eval.records.foreign import foreign_items, foreign_results
from dare_eval.records.foreign_config import foreign_settings
from dare_eval.records.item_files import ItemFile, read_items
from dare_eval.records.manifest import MANIFEST_NAME, RunManifest, read_manifest
from dare_eval.records.summary import REPORT_NAME, ResultRow, read_report

TIMESTAMP = re.compile(r"\d{8}_\d{6}")
RECORDS, FAILURES = "records", "failures"
_BY_MODEL = "*/**/*.jsonl"  # a model's name may hold a slash
GRADED = "credit"
"""Name of the mean graded credit where the manifest gives none."""


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation run on disk."""

    folder: Path
    manifest: RunManifest | None
    """None when it is missing or cannot be read; ``problems`` says why."""
    problems: tuple[str, ...]
    origin: str
    """``dare`` (item records) or ``opencompass`` (predictions and results only)."""

    @property
    def run_id(self) -> str:
        """Return the manifest's id, else the last two parts of the path."""
        return self.manifest.run_id if self.manifest else "/".join(self.folder.resolve().parts[-2:])

    @property
    def status(self) -> str:
        """Return the manifest's status; without one, ``finished`` when OpenCompass wrote its summary."""
        if self.manifest is not None:
            return self.manifest.status
        return "finished" if (self.folder / "summary").is_dir() else "unknown"

    @property
    def started(self) -> str | None:
        """Return when the run began: from the manifest (UTC), else from the folder's name (local time)."""
        if self.manifest is not None:
            return self.manifest.started
        try:
            return datetime.strptime(self.folder.name, "%Y%m%d_%H%M%S").isoformat()
        except ValueError:  # not OpenCompass' name for a run
            return None

    def results(self) -> list[tuple[str, str]]:
        """Return every ``(model, data set)`` the run holds something for, sorted."""
        if self.origin == "opencompass":
            return foreign_results(self.folder)
        return sorted((str(path.parent.relative_to(self.folder / RECORDS)), path.stem) for path in self._files())

    def items(self, model: str, dataset: str) -> ItemFile:
        """Return the item records of one result; raises ``DataError`` when there are none."""
        if self.origin == "opencompass":
            return foreign_items(self.folder, model, dataset)
        place = Path(model) / f"{dataset}.jsonl"
        if place.is_absolute() or ".." in place.parts:  # a manifest of a stranger must not open other files
            raise DataError("the name of a model or data set leads out of the run's folder", seen=place)
        return read_items(self.folder / RECORDS / place)

    def report(self) -> list[ResultRow]:
        """Return the rows of ``report.json``; empty when the run has none."""
        path = self.folder / REPORT_NAME
        return read_report(path) if path.exists() else []

    def failures(self, model: str, dataset: str) -> list[str]:
        """Return what failed on one result, as stage and cause."""
        found = []
        for path in sorted((self.folder / FAILURES).glob("*.json")):
            try:
                record = read_json(path, "failure record")
            except DareError as error:
                found.append(f"{path.name}: {error.what}")
                continue
            if isinstance(record, dict) and (record.get("model"), record.get("dataset")) == (model, dataset):
                found.append(f"failed ({record.get('stage')}): {record.get('cause')}")
        return found

    def graded_metric(self, dataset: str) -> str:
        """Return the name of the mean graded credit on ``dataset``."""
        entry = self.manifest.dataset(dataset) if self.manifest else None
        return (entry.graded_metric if entry else None) or GRADED

    def settings(self, model: str, dataset: str) -> dict[str, Any]:
        """Return everything that makes this result a particular measurement, as ``records.comparable`` reads it."""
        if self.origin == "opencompass":
            return foreign_settings(self.folder, model, dataset)
        known: dict[str, Any] = {}
        entry = self.manifest.dataset(dataset) if self.manifest else None
        maker = self.manifest.model(model) if self.manifest else None
        if entry is not None:
            for name in ("dataset", "split", "prompt_hash", "content_hash", "scorer", "metric", "max_out_len"):
                known[name] = getattr(entry, name) or None
            known["task_template"] = entry.template
        if maker is not None:
            known |= {"family": maker.family, "weight_hash": maker.weight_hash}
            known["decode_spec"] = maker.decode_specs.get(dataset)
        if self.manifest is not None:
            known |= {key: self.manifest.environment.get(key) for key in ("device", "attn_backend", "packages", "git")}
            known["seed"] = self.manifest.seeds.get(model)
        return known

    def _files(self) -> Iterator[Path]:
        yield from (self.folder / RECORDS).glob(_BY_MODEL)


def is_run(folder: Path) -> bool:
    """Return whether ``folder`` itself is a run (ours or OpenCompass'), also one that stopped before its first item."""
    patterns = (f"{RECORDS}/{_BY_MODEL}", "predictions/*/*.json", "results/*/*.json")
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns) or _planned(folder)


def load_run(folder: Path) -> Run:
    """Return the run in ``folder``; raises ``DataError`` when it holds no results at all."""
    if not is_run(folder):
        raise DataError(
            "no results in this folder",
            seen=folder,
            allowed="a folder with manifest.json, records/, predictions/ or results/",
            remedy="give the run folder (work folder/timestamp), or run the evaluation first",
        )
    manifest, problems = None, []
    try:
        manifest = read_manifest(folder)
    except DareError as error:
        problems.append(error.what)
    has_records = next((folder / RECORDS).glob(_BY_MODEL), None) is not None
    ours = has_records or manifest is not None
    if not ours and not (folder / MANIFEST_NAME).exists():
        problems = ["made by plain OpenCompass: no manifest and no item records"]
    return Run(folder, manifest, tuple(problems), "dare" if ours else "opencompass")


def find_run(path: Path) -> Run:
    """Return the run that ``path`` means: its folder, a file in it, or the latest finished run below a work folder."""
    if path.is_file():
        return load_run(path.parent)
    if not path.exists():
        raise DataError("no such run", seen=path, remedy="dare-eval ls runs lists what is known")
    if is_run(path):
        return load_run(path)
    below = [folder for folder in run_folders(path) if folder.parent == path]
    finished = [folder for folder in below if _finished(folder)]
    if not below:
        return load_run(path)  # raises with what is expected
    return load_run(max(finished or below, key=lambda folder: folder.name))


def run_folders(root: Path) -> Iterator[Path]:
    """Yield every run folder at or below ``root``, sorted; nothing inside a run is searched."""
    if is_run(root):
        yield root
        return
    for child in sorted(root.iterdir()) if root.is_dir() else ():
        if child.is_dir() and not child.is_symlink() and not child.name.startswith("."):
            yield from run_folders(child)


def _planned(folder: Path) -> bool:
    if not (folder / MANIFEST_NAME).is_file():
        return False
    try:
        return read_manifest(folder).kind == "evaluation"
    except DareError:  # damaged: OpenCompass' folder name still tells a run from a checkpoint
        return TIMESTAMP.fullmatch(folder.name) is not None


def _finished(folder: Path) -> bool:
    if not TIMESTAMP.fullmatch(folder.name):  # a stray folder of notes must not become the latest run
        return False
    if not (folder / MANIFEST_NAME).exists():
        return (folder / REPORT_NAME).exists() or (folder / "summary").is_dir()
    try:
        return read_manifest(folder).status == "finished"
    except DareError:
        return False
