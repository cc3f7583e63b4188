"""What a person means by a run: a folder, a file in it, a work folder, a run id or the name of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError, DataError, nearest
from dare_eval.records.database import exists
from dare_eval.records.manifest import read_manifest
from dare_eval.records.runs import Run, find_run, is_run, load_run, run_folders
from dare_eval.records.store import Store
from dare_eval.records.tables import Checkpoint


@dataclass(frozen=True, slots=True)
class Located:
    """A run, and the model in it when a checkpoint was named."""

    run: Run
    model: str | None


def locate(text: str, url: str | None = None) -> Located:
    """Return the run that ``text`` means; of a checkpoint its newest evaluation.

    Paths win over names; names are looked up in the store at ``url`` (default ``DARE_DB``). Raises ``DataError``
    naming the nearest known name when nothing is found.
    """
    path = Path(text)
    if path.is_file():
        return Located(load_run(path.parent), None)
    if path.is_dir() and (is_run(path) or next(run_folders(path), None) is not None) and not _is_training(path):
        return Located(find_run(path), None)
    if not exists(url):
        raise _nothing(text, set())
    store = Store(url)
    known = [c for c in store.checkpoints() if text == c.name or (path.exists() and _is_in(c, path))]
    if known:
        return _evaluation_of(store, known[-1])
    runs = [evaluation for evaluation in store.evaluations() if evaluation.run_id == text]
    if runs:
        return Located(load_run(Path(runs[-1].folder)), None)
    raise _nothing(text, {c.name for c in store.checkpoints()} | {e.run_id for e in store.evaluations()})


def _nothing(text: str, names: set[str]) -> DataError:
    hint = nearest(text, names)
    return DataError(
        f"no run or checkpoint called '{text}'" + (f"; did you mean '{hint}'?" if hint else ""),
        seen=text,
        allowed="a run folder, report.json, a run id or a checkpoint name of the store",
        remedy="dare-eval index runs/, then dare-eval ls runs or dare-eval ls checkpoints",
    )


def _evaluation_of(store: Store, checkpoint: Checkpoint) -> Located:
    results = store.results(weight_hash=checkpoint.weight_hash)
    if not results:
        raise DataError(
            f"checkpoint '{checkpoint.name}' has no evaluation in the store",
            seen=checkpoint.folder,
            remedy="evaluate it, or index the folder of its evaluation: dare-eval index runs/",
        )
    newest = results[-1]
    folder = next(e.folder for e in store.evaluations() if e.id == newest.evaluation_id)
    return Located(load_run(Path(folder)), newest.model)


def _is_in(checkpoint: Checkpoint, path: Path) -> bool:
    """Whether ``path`` is the checkpoint's folder or the training run that holds it."""
    folder = Path(checkpoint.folder)
    return path.resolve() in (folder, folder.parent)


def _is_training(path: Path) -> bool:
    try:
        return read_manifest(path).kind == "training"
    except DareError:  # no manifest: not a training run
        return False
