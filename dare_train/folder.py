"""The folder of a training run: fresh, to be continued, or finished already.

    config.yaml     resolved settings          metrics.jsonl   training curve
    manifest.json   what ran, at what cost     checkpoints/    for resuming
    model/          for evaluation             failures/       batches that gave no finite loss

The same command on the same folder continues an unfinished run and does not repeat a finished one. Settings that
decide the weights may not change in between.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, UsageError
from dare_eval.records import folder_lock
from dare_eval.records.atomic import write_atomic
from dare_eval.records.manifest import read_manifest
from dare_train.config import RunConfig
from dare_train.settings import read_yaml, to_yaml

# What may differ between the first and the continuing command: length, housekeeping and how the work is spread;
# nothing that decides a step beyond its last bits.
CHANGEABLE = (
    "output_dir",
    "train.max_steps",
    "train.log_every",
    "train.save_every",
    "train.keep_checkpoints",
    "train.track",
    "train.micro_batch_size",
    "train.strategy",
    "train.sequence_parallel",
    "train.shard_size",
    "train.reshard_after_forward",
    "train.reduce_every_part",
    "train.cpu_offload",
    "train.gradient_checkpointing",
    "evaluation",
)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run writes, and what it finds there."""

    path: Path
    checkpoint: Path | None
    """Newest whole checkpoint to continue from."""
    finished: bool
    """True when this very run has already reached its last step and exported its model."""

    @property
    def model(self) -> Path:
        """Folder of the exported model."""
        return self.path / "model"


def open_folder(config: RunConfig, *, fresh: bool = False) -> RunFolder:
    """Return the folder of the run, moving an earlier run aside when ``fresh``.

    Raises ``UsageError`` when the folder holds a run of other settings or of more steps, or something that is no run.
    """
    path = Path(config.output_dir)
    try:
        if fresh and path.resolve().exists():
            _move_aside(path)
        # The lock, and drafts of files that a killed run was writing, are no run.
        if not path.resolve().exists() or all(item.name.startswith(".") for item in path.iterdir()):
            return RunFolder(path, None, False)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"output_dir cannot be the folder of a run: {reason}",
            seen=str(path)[:200],
            allowed="a folder that can be read and written, or a name for a new one",
            remedy="choose another one with --output-dir",
        ) from None
    stored = path / "config.yaml"
    if not stored.is_file():
        raise UsageError(
            "output_dir holds something that is not a training run", seen=path, remedy="choose another output_dir"
        )
    changed = changed_keys(read_yaml(stored), json.loads(config.model_dump_json()))
    if changed:
        raise UsageError(
            "output_dir holds a run of other settings",
            seen=f"{path}: {', '.join(changed)} differ",
            allowed=f"the same settings, apart from {', '.join(CHANGEABLE)}",
            remedy="--fresh moves the old run aside; or choose another output_dir",
        )
    return _existing(path, config)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other commands out of the run folder for a while; it is made when missing, and removed when left empty.

    Raises ``UsageError`` when another command trains there, ``SetupError`` when it cannot be written.
    """
    place = path.resolve()
    new = not place.exists()
    folder_lock.hold(place, option="--output-dir")
    try:
        yield
    finally:
        if new and [item.name for item in place.iterdir()] == [folder_lock.NAME]:
            (place / folder_lock.NAME).unlink()
            place.rmdir()
        folder_lock.release(place)


def _move_aside(path: Path) -> None:
    """Rename the folder of an earlier run, unless a command is still at work in it."""
    with alone(path):
        path.rename(_free_name(path))


def write_config(folder: RunFolder, config: RunConfig) -> None:
    """Store the resolved settings of the run."""
    write_atomic(folder.path / "config.yaml", to_yaml(config))


def changed_keys(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted keys in which two resolved configs differ, those that may change left out."""
    found = []
    for key in dict.fromkeys([*old, *new]):
        path = f"{prefix}{key}"
        before, after = old.get(key), new.get(key)
        if path in CHANGEABLE or before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            found += changed_keys(before, after, f"{path}.")
        else:
            found.append(path)
    return found


def _existing(path: Path, config: RunConfig) -> RunFolder:
    from dare_train.engine.checkpoint import checkpoints

    found = checkpoints(path / "checkpoints")
    newest = found[-1] if found else None
    steps = int(newest.name.rpartition("_")[2]) if newest else 0
    if steps > config.train.max_steps:
        raise UsageError(
            "output_dir holds a run that is longer than asked for",
            seen=f"{path}: {steps} steps, train.max_steps = {config.train.max_steps}",
            allowed=f"train.max_steps of at least {steps}",
            remedy="--fresh moves the old run aside; dare-train export writes a model of an earlier checkpoint",
        )
    reached = steps == config.train.max_steps
    return RunFolder(path, newest, reached and (path / "model" / "config.json").is_file() and _closed(path))


def _closed(path: Path) -> bool:
    """Return whether the manifest says that the run ended; one killed while it exported is done again from its end."""
    try:
        return read_manifest(path).status == "finished"
    except DareError:
        return False


def _free_name(path: Path) -> Path:
    number = 1
    while (free := path.with_name(f"{path.name}.old-{number}")).exists():
        number += 1
    return free
