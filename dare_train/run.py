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

from dare_eval.errors import DareError, UsageError
from dare_train.config import RunConfig
from dare_train.engine.world import World
from dare_train.estimate import check_fits
from dare_train.exhausted import explained
from dare_train.folder import RunFolder, alone, open_folder, write_config
from dare_train.reading import skipped_text
from dare_train.registration import check_same_origin, finish_manifest, start_manifest
from dare_train.setup import ModelPlan, build_model, choose_device, plan_model

if TYPE_CHECKING:
    from dare_train.algorithms.build import Method
    from dare_train.reading import TrainingRows


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
    device, world = join(config)
    check_batch(config, world)
    plan = plan_model(config.model)
    check_spread(config, world, plan)
    return Prepared(config, plan, method.read(plan, config.data), device, world)


def check_batch(config: RunConfig, world: World) -> None:
    """Raise ``UsageError`` when the processes cannot share the rows of a step evenly."""
    if config.train.batch_size % world.size:
        raise UsageError(
            "train.batch_size is not a multiple of the number of processes",
            seen=f"{config.train.batch_size} rows, {world.size} processes",
            allowed=f"a multiple of {world.size}",
            remedy=f"--set train.batch_size={-(-config.train.batch_size // world.size) * world.size}",
        )


def check_spread(config: RunConfig, world: World, plan: ModelPlan) -> None:
    """Raise ``UsageError`` when the network cannot be spread so, ``SetupError`` when a package is missing."""
    from dare_eval.networks.optional import optional
    from dare_train.engine.sequence import check_split
    from dare_train.engine.sharding import check_strategy

    check_strategy(config.model, config.train, world)
    check_split(world.split, plan.config.heads)
    if config.model.quantize:
        optional("bitsandbytes", purpose="4-bit loading", extra="quant")


def join(config: RunConfig) -> tuple[str, World]:
    """Return this process's device and its place among all processes."""
    from dare_train.engine.world import join_world
    from dare_train.slurm import adopt_slurm_step

    adopt_slurm_step()
    device = choose_device(config.train.device, int(os.environ.get("LOCAL_RANK", "0")))
    return device, join_world(device, config.train.sequence_parallel)


def run(config: RunConfig, method: Method, console: Console, *, fresh: bool = False) -> RunFolder:
    """Train ``config`` to its end and return its folder; a finished run is reported and not repeated."""
    _, world = join(config)
    if world.leads:
        open_folder(config, fresh=fresh)
    world.barrier()
    folder = open_folder(config)
    if folder.finished:
        console.print(f"already trained: {folder.model} (--fresh trains again)", highlight=False, soft_wrap=True)
        return folder
    prepared = prepare(config, method)
    algorithm = method.build(prepared)
    check_fits(prepared, algorithm)
    with alone(folder.path) if world.leads else contextlib.nullcontext():
        world.barrier()
        folder = open_folder(config)  # another command may have trained here while rows were read
        train_prepared(prepared, folder, method.name(config), algorithm, console)
        world.barrier()
    return open_folder(config)


def build_state(prepared: Prepared, algorithm: Any) -> Any:
    """Return the moving parts of a run before its first step."""
    from dare_train.engine.balance import watch_routers
    from dare_train.engine.ema import Ema
    from dare_train.engine.loop import TrainState
    from dare_train.engine.optim import build_optimizer

    config, world = prepared.config, prepared.world
    network = build_network(prepared)
    algorithm.begin(network, lambda: build_network(prepared))
    return TrainState(
        network,
        build_optimizer(network, config.optim),
        algorithm,
        world,
        ema=Ema(network, config.optim.ema_decay) if config.optim.ema_decay else None,
        balance=watch_routers(network, config.moe.aux_coef, world),
        device=prepared.device,
        strategy=config.train.strategy,
    )


def build_network(prepared: Prepared) -> Any:
    """Return the network as it is before the first step, on its device and spread over the processes."""
    from dare_train.engine.balance import freeze_routers
    from dare_train.engine.sequence import make_split
    from dare_train.engine.sharding import place

    config, train = prepared.config, prepared.config.train

    def make(empty: bool) -> Any:
        found = build_model(prepared.plan, config.model, config.seed, empty=empty, device=prepared.device)
        if config.moe.freeze_router:
            freeze_routers(found)
        return found

    network: Any = place(make, prepared.world, train, prepared.device)
    network.gradient_checkpointing = train.gradient_checkpointing
    network.attn_backend = train.attn_backend
    network.split = make_split(prepared.world)
    return network.train()


def gather_model(prepared: Prepared, state: Any) -> Any:
    """Return the trained network (or its average) as one whole in the first process; every process must call it."""
    from dare_train.engine.sharding import whole_state

    with state.ema.applied(state.network) if state.ema is not None else contextlib.nullcontext():
        full = {name: tensor.detach().clone() for name, tensor in whole_state(state.network, state.world).items()}
    if not state.world.leads:
        return None
    adapted = prepared.config.model.lora is not None
    network = build_model(prepared.plan, prepared.config.model, prepared.config.seed, empty=True)
    kept = {name: tensor for name, tensor in full.items() if ".lora_" in name or not adapted}
    network.load_state_dict(kept, assign=True, strict=not adapted)
    return network.eval()


def train_prepared(prepared: Prepared, folder: RunFolder, name: str, algorithm: Any, console: Console) -> None:
    """Build or resume the network, train it, export it and write its manifest.

    Raises ``SetupError`` when the disk or the memory does not suffice; what was saved before stays.
    """
    import torch

    from dare_train.engine.loop import train
    from dare_train.export import export_model

    config, world = prepared.config, prepared.world
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    with explained(folder.path):
        state = build_state(prepared, algorithm)
        _resume(prepared, folder, state, console)
        try:
            if world.leads:
                write_config(folder, config)
                start_manifest(folder.path, prepared, name, algorithm)
            known = _tell_skipped(prepared, console)
            train(state, config, folder.path, console)
        except BaseException:
            if world.leads:  # on a full disk the manifest keeps saying 'running'; the cause counts
                with contextlib.suppress(OSError, DareError):
                    finish_manifest(folder.path, state, status="incomplete")
            raise
        _tell_skipped(prepared, console, known=known)
        finished = gather_model(prepared, state)
        if world.leads:
            export_model(finished, prepared.plan.tokenizer, folder.model, config.model)
            finish_manifest(folder.path, state, status="finished", model=folder.model, data=prepared.rows.record)


def _resume(prepared: Prepared, folder: RunFolder, state: Any, console: Console) -> None:
    """Fill ``state`` from the newest checkpoint of the folder, when there is one."""
    from dare_train.engine.checkpoint import load_checkpoint

    if folder.checkpoint is None:
        return
    if prepared.world.leads:
        check_same_origin(folder.path, prepared)
    load_checkpoint(folder.checkpoint, state)
    if prepared.world.leads:
        console.print(f"continuing after step {state.step}")


def _tell_skipped(prepared: Prepared, console: Console, *, known: str = "") -> str:
    """Print how many rows were left out so far, unless that is known, and return the text."""
    text = skipped_text(prepared.rows.record)
    if prepared.world.leads and text != known:
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return text
