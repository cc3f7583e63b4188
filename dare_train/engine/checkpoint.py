"""Checkpoints that a run resumes from exactly, and that are either whole or not there.

A checkpoint is a folder ``step_00000250`` with the distributed-checkpoint files of torch (parameters and
optimizer by their names, so that another number of processes can read them) and ``progress.json`` (step, counters,
state of the algorithm's and of torch's own random streams). It is written beside its final name and renamed, so a
full disk or a kill leaves the previous one. The model for evaluation is a separate export.
"""

from __future__ import annotations

import contextlib
import pickle
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from dare_eval.errors import DataError, SetupError
from dare_eval.records.atomic import read_json, write_json

if TYPE_CHECKING:
    from dare_train.engine.loop import TrainState

PREFIX = "step_"
DAMAGE = (
    OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, ImportError, EOFError,
    pickle.UnpicklingError, CheckpointException,
)  # fmt: skip
"""What torch raises for files that are cut short, overwritten or of something else."""


def save_checkpoint(folder: Path, state: TrainState) -> Path:
    """Write ``state`` below ``folder`` and return its path.

    Raises ``SetupError`` when it cannot be written; earlier checkpoints are untouched then.
    """
    world, progress = state.world, state.progress()
    final = _place(folder, progress["step"])
    draft = folder / f".{final.name}.tmp"
    try:
        if world.leads:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
        world.barrier()
        with _quiet():
            dcp_save(_content(state), checkpoint_id=draft, no_dist=world.processes == 1)
        world.barrier()
        if world.leads:
            write_json(draft / "progress.json", {**progress, "torch_rng": torch.get_rng_state().tolist()})
            shutil.rmtree(final, ignore_errors=True)
            draft.rename(final)
    except (OSError, RuntimeError, CheckpointException) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise SetupError(
            f"the checkpoint of step {progress['step']} cannot be written: {_reason(error)}",
            seen=final,
            allowed="a writable disk with room",
            remedy="free disk space and run the same command: it continues from " + _previous(folder),
        ) from error
    world.barrier()
    return final


def load_checkpoint(path: Path, state: TrainState) -> None:
    """Fill ``state`` from ``path``; the number of processes may be another one. Raises ``DataError`` when damaged."""
    progress: dict[str, Any] = read_json(path / "progress.json", "the progress of the checkpoint")
    content = _content(state)
    try:
        with _quiet():
            dcp_load(content, checkpoint_id=path, no_dist=state.world.processes == 1)
    except DAMAGE as error:
        raise _damaged(path, error) from error
    set_state_dict(
        state.network,
        state.optimizer,
        model_state_dict=content["network"],
        optim_state_dict=content["optimizer"],
        options=StateDictOptions(strict=False),
    )
    try:
        torch.set_rng_state(torch.tensor(progress.pop("torch_rng"), dtype=torch.uint8))
        state.restore(progress)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _damaged(path / "progress.json", error) from error


def _damaged(path: Path, error: BaseException) -> DataError:
    checkpoint = path.parent if path.suffix == ".json" else path
    return DataError(
        f"the checkpoint cannot be read: {_reason(error)}",
        seen=path,
        allowed="a checkpoint as this package writes it",
        remedy=f"remove {checkpoint} to continue from the one before, or train afresh with --fresh",
    )


def _content(state: TrainState) -> dict[str, Any]:
    # Frozen weights (under an adapter) are those of the base and are not saved again.
    options = StateDictOptions(ignore_frozen_params=True)
    parameters, states = get_state_dict(state.network, state.optimizer, options=options)
    average = {"ema": state.ema.shadow} if state.ema is not None else {}
    return {"network": parameters, "optimizer": states, **average}


def read_weights(path: Path, network: nn.Module) -> None:
    """Fill the trained parameters of ``network`` from the checkpoint at ``path``, however many processes wrote it.

    The moving average is taken where there is one; what was frozen in training is not in a checkpoint and is left as
    it is. Raises ``DataError`` when the checkpoint is damaged or belongs to another network.
    """
    stored = _stored_names(path)
    part = "ema" if any(name.startswith("ema.") for name in stored) else "network"
    names = {name.removeprefix(f"{part}.") for name in stored if name.startswith(f"{part}.")}
    found = {name: p.detach() for name, p in network.named_parameters() if name in names}
    buffers = {name for name, _ in network.named_buffers()}
    if not found or names - found.keys() - buffers:
        raise DataError(
            "the checkpoint does not fit its network", seen=path, remedy="export it from the folder it was trained in"
        )
    content: dict[str, Any] = {part: {name: _like_stored(tensor, part) for name, tensor in found.items()}}
    try:
        with _quiet():
            dcp_load(content, checkpoint_id=path, no_dist=True)
    except DAMAGE as error:
        raise _damaged(path, error) from error
    with torch.no_grad():
        for name, tensor in next(iter(content.values())).items():
            found[name].copy_(tensor)


def _like_stored(tensor: Tensor, part: str) -> Tensor:
    return tensor.float() if part == "ema" else tensor


def _stored_names(path: Path) -> set[str]:
    try:
        return set(FileSystemReader(path).read_metadata().state_dict_metadata)
    except DAMAGE as error:
        raise _damaged(path, error) from error


def has_checkpoint(folder: Path, step: int) -> bool:
    """Return whether a whole checkpoint of ``step`` is below ``folder``."""
    return (_place(folder, step) / "progress.json").is_file()


def _place(folder: Path, step: int) -> Path:
    return folder / f"{PREFIX}{step:08d}"


def checkpoints(folder: Path) -> list[Path]:
    """Return the whole checkpoints below ``folder``, oldest first."""
    return sorted(path for path in folder.glob(f"{PREFIX}*") if (path / "progress.json").is_file())


def prune_checkpoints(folder: Path, keep: int) -> None:
    """Remove all but the newest ``keep`` checkpoints."""
    for path in checkpoints(folder)[:-keep]:
        shutil.rmtree(path)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide torch's note that one process saves alone: that is what is meant here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _previous(folder: Path) -> str:
    found = checkpoints(folder)
    return found[-1].name if found else "the start"


def _reason(error: BaseException) -> str:
    failures = getattr(error, "failures", None)
    if failures:
        error = next(iter(failures.values()))[0]
    return f"{type(error).__name__}: {error}".splitlines()[0]
