"""One training run from its settings to a registered model: check, build, resume or start, train, export, record.

Which algorithm is trained comes in as a builder, so every verb of the command line goes through here. Leaves out the
evaluation of the result (``dare_train.then_eval``).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dare_eval.errors import SetupError
from dare_train.config import RunConfig
from dare_train.engine.world import World
from dare_train.folder import RunFolder, open_folder, write_config
from dare_train.registration import finish_manifest, start_manifest
from dare_train.setup import ModelPlan, TrainingRows, build_model, choose_device, plan_model

if TYPE_CHECKING:
    from dare_train.algorithms.build import Method


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run whose settings, data and model config have been checked; no weight is read yet."""

    config: RunConfig
    plan: ModelPlan
    rows: TrainingRows
    device: str
    world: World


def prepare(config: RunConfig, method: Method) -> Prepared:
    """Check everything that can be checked before weights are read; raises the error of what is wrong."""
    from dare_train.engine.world import join_world

    device = choose_device(config.train.device, int(os.environ.get("LOCAL_RANK", "0")))
    plan = plan_model(config.model)
    rows = method.read(plan, config.data)
    return Prepared(config, plan, rows, device, join_world(device))


def run(config: RunConfig, method: Method, console: Console, *, fresh: bool = False) -> RunFolder:
    """Train ``config`` to its end and return its folder; a finished run is reported and not repeated."""
    folder = open_folder(config, fresh=fresh)
    if folder.finished:
        console.print(f"already trained: {folder.model} (--fresh trains again)")
        return folder
    prepared = prepare(config, method)
    train_prepared(prepared, folder, method.name(config), method.build(prepared), console)
    return open_folder(config)


def train_prepared(prepared: Prepared, folder: RunFolder, name: str, algorithm: Any, console: Console) -> None:
    """Build or resume the network, train it, export it and write its manifest."""
    import torch

    from dare_train.engine.checkpoint import load_checkpoint
    from dare_train.engine.loop import TrainState, train
    from dare_train.engine.optim import build_optimizer
    from dare_train.export import export_model

    config, world = prepared.config, prepared.world
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    network = build_model(prepared.plan, config.model, config.seed, prepared.device).train()
    algorithm.begin(network)
    state = TrainState(network, build_optimizer(network, config.optim), algorithm, world)
    if folder.checkpoint:
        state.restore(load_checkpoint(folder.checkpoint, network, state.optimizer, world))
        console.print(f"continuing after step {state.step}")
    if world.leads:
        write_config(folder, config)
        start_manifest(folder.path, prepared, name, algorithm)
    try:
        train(state, config, folder.path, console)
    except BaseException as error:
        if world.leads:
            with contextlib.suppress(OSError):  # on a full disk the manifest keeps saying 'running'; the cause counts
                finish_manifest(folder.path, state, status="incomplete")
        if isinstance(error, OSError):
            raise _unwritable(folder, error) from error
        raise
    if world.leads:
        export_model(network.eval(), prepared.plan.tokenizer, folder.model, config.model)
        finish_manifest(folder.path, state, status="finished", model=folder.model)


def _unwritable(folder: RunFolder, error: OSError) -> SetupError:
    return SetupError(
        f"the run cannot write its files: {error.strerror or error}",
        seen=folder.path,
        allowed="a writable disk with room",
        remedy="free disk space and run the same command: it continues from the last checkpoint",
    )
