"""The training loop: take work, accumulate gradients, clip, step, log, save, stop.

An algorithm hands out the work of one optimizer step already split into parts, and adds each part's gradient,
divided by a denominator of the whole global batch that it computed beforehand; so the loop never averages
averages. Everything that decides the next step is in the checkpoint: a run that is stopped anywhere and started
again ends with the same weights as one that was not. Leaves out what is trained (``dare_train.algorithms``) and
what happens to the finished model (``dare_train.registration``, ``dare_train.then_eval``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from rich.console import Console
from torch import nn

from dare_eval.errors import IncompleteError
from dare_train.config import RunConfig
from dare_train.engine.balance import RouterBalance
from dare_train.engine.checkpoint import has_checkpoint, prune_checkpoints, save_checkpoint
from dare_train.engine.ema import Ema
from dare_train.engine.heldout import judge
from dare_train.engine.interrupts import Interrupts
from dare_train.engine.metrics import MetricsFile, Window
from dare_train.engine.noise import step_noise
from dare_train.engine.optim import clip_gradients, learning_rate, set_learning_rate
from dare_train.engine.progress import TrainingProgress
from dare_train.engine.sharding import average_gradients, share_gradients
from dare_train.engine.trackers import Tracker, open_trackers
from dare_train.engine.world import World


class Algorithm(Protocol):
    """What a training method provides; it owns its data, its noise and its loss."""

    def begin(self, network: Any, build: Callable[[], Any]) -> None:
        """See the network before the first step, also of a continued run; ``build`` makes another one like it."""
        ...

    def work(self, step: int) -> Sequence[Any]:
        """Return this process's parts of optimizer step ``step``; each has a ``dump()`` for failure reports."""
        ...

    def backward(self, network: nn.Module, part: Any) -> Mapping[str, float]:
        """Add the gradient of ``part`` and return sums: ``loss`` (already divided) and budget counters."""
        ...

    def evaluate(self, network: Any) -> Mapping[str, list[float]]:
        """Return values of this process's held-out rows by name; nothing when no row is held out."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the resolved settings of the method, JSON-ready, for the manifest."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what resuming needs beyond the step, JSON-ready."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        ...


@dataclass(slots=True)
class Counters:
    """What the run has spent so far, over all processes; saved with the checkpoint."""

    rows: float = 0.0
    forwards: float = 0.0
    tokens: float = 0.0
    wall_s: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class TrainState:
    """The moving parts of a run."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    algorithm: Algorithm
    world: World
    ema: Ema | None = None
    balance: RouterBalance | None = None
    """Set for a mixture of experts."""
    device: str = "cpu"
    strategy: str = "auto"
    step: int = 0
    counters: Counters = field(default_factory=Counters)

    def progress(self) -> dict[str, Any]:
        """Return the JSON-ready part of a checkpoint."""
        spent = self.counters
        counters = {"rows": spent.rows, "forwards": spent.forwards, "tokens": spent.tokens, "wall_s": spent.wall_s}
        routers = {"routers": self.balance.state()} if self.balance is not None else {}
        counters_and_more = {**counters, "extra": spent.extra}
        return {"step": self.step, "counters": counters_and_more, "algorithm": self.algorithm.state(), **routers}

    def restore(self, progress: Mapping[str, Any]) -> None:
        """Take up the progress of a checkpoint."""
        self.step = int(progress["step"])
        self.counters = Counters(**progress["counters"])
        self.algorithm.restore(progress["algorithm"])
        if self.balance is not None and "routers" in progress:
            self.balance.restore(progress["routers"])


def train(state: TrainState, config: RunConfig, folder: Path, console: Console) -> None:
    """Run optimizer steps until ``train.max_steps`` and leave a checkpoint of the last one.

    Raises ``IncompleteError`` when a signal asked to stop (after saving) and when the loss or the gradient is not
    finite (the batch is saved under ``failures``, the weights are those before the step).
    """
    settings, world = config.train, state.world
    metrics = MetricsFile(folder / "metrics.jsonl", keep_until=state.step) if world.leads else None
    progress = TrainingProgress(console, start=state.step, total=settings.max_steps, shown=world.leads)
    window, saved = Window(), state.step if has_checkpoint(folder / "checkpoints", state.step) else -1
    names = settings.track if world.leads else ()
    with open_trackers(names, folder, config.model_dump()) as trackers, progress, Interrupts() as interrupts:
        if state.step == 0:
            _tell(trackers, 0, judge(state, metrics, console))
        while state.step < settings.max_steps:
            numbers = train_step(state, config, folder)
            window.add(numbers)
            if _due(state.step, settings.log_every, settings.max_steps):
                _tell(trackers, state.step, _log(state, window, metrics))
            if _due(state.step, settings.eval_every, settings.max_steps):
                _tell(trackers, state.step, judge(state, metrics, console))
            progress.update(state.step, {key: numbers[key] for key in ("loss", "lr", "tokens_per_s")})
            stop = world.anyone(interrupts.received is not None)
            if stop or _due(state.step, settings.save_every, settings.max_steps):
                saved = _save(state, folder, settings.keep_checkpoints)
            if stop and state.step < settings.max_steps:
                raise _stopped(state, interrupts.received, settings.max_steps)
    if saved != state.step:
        _save(state, folder, settings.keep_checkpoints)


def _due(step: int, every: int, last: int) -> bool:
    """Return whether something happens after ``step``: every so many steps (0: never) and after the last."""
    return step == last or (every > 0 and step % every == 0)


def _stopped(state: TrainState, signal: str | None, last: int) -> IncompleteError:
    return IncompleteError(
        f"stopped by {signal or 'another process'} after step {state.step}",
        seen=f"{state.step} of {last} steps, checkpoint saved",
        remedy="the same command continues from there",
    )


def train_step(state: TrainState, config: RunConfig, folder: Path) -> dict[str, float]:
    """Do one optimizer step and return its numbers (over all processes)."""
    began_s = time.perf_counter()
    lr = learning_rate(state.step, config.optim, config.train.max_steps)
    set_learning_rate(state.optimizer, lr)
    parts = state.algorithm.work(state.step)
    ready_s = time.perf_counter()
    state.optimizer.zero_grad(set_to_none=True)
    totals = state.world.sums(_accumulate(state, parts, config))
    average_gradients(state.network, state.world, state.strategy)
    computed_s = time.perf_counter()
    norm = clip_gradients(state.network.parameters(), config.optim.clip_norm)
    if not (math.isfinite(totals["loss"]) and math.isfinite(norm)):
        raise _not_finite(state, parts, totals["loss"], norm, folder)
    state.optimizer.step()
    if state.ema is not None:
        state.ema.update(state.network)
    use = state.balance.step() if state.balance is not None else {}
    state.step += 1
    wall_s = time.perf_counter() - began_s
    _count(state.counters, totals, wall_s)
    numbers = {key: value for key, value in totals.items() if key not in ("rows", "forwards", "tokens")}
    other_s = wall_s - (computed_s - ready_s)
    speed = totals["tokens"] / wall_s
    found = {"lr": lr, "grad_norm": norm, "tokens_per_s": speed, "step_s": wall_s, "outside_s": other_s}
    return {**numbers, **use, **found}


def _accumulate(state: TrainState, parts: Sequence[Any], config: RunConfig) -> dict[str, float]:
    """Add the gradients of all parts and return the sums of what they report."""
    totals: dict[str, float] = {}
    noise = step_noise(config.seed, state.step, state.world.process, state.device)
    half = torch.autocast(state.device.split(":")[0], torch.bfloat16, enabled=config.train.precision == "bf16")
    with noise, half:
        for part in parts:
            if not config.train.reduce_every_part:
                share_gradients(state.network, now=part is parts[-1])
            for key, value in state.algorithm.backward(state.network, part).items():
                totals[key] = totals.get(key, 0.0) + value
    return totals


def _count(counters: Counters, totals: Mapping[str, float], wall_s: float) -> None:
    counters.rows += totals["rows"]
    counters.forwards += totals["forwards"]
    counters.tokens += totals["tokens"]
    counters.wall_s += wall_s


def _tell(trackers: Sequence[Tracker], step: int, numbers: Mapping[str, float]) -> None:
    for tracker in trackers:
        tracker.log(step, numbers)


def _log(state: TrainState, window: Window, metrics: MetricsFile | None) -> dict[str, float]:
    means = window.take()
    if metrics is not None:
        spent = state.counters
        metrics.append(
            {"step": state.step, **means, "rows": spent.rows, "tokens": spent.tokens, "wall_s": spent.wall_s}
        )
    return means


def _save(state: TrainState, folder: Path, keep: int) -> int:
    where = folder / "checkpoints"
    save_checkpoint(where, state)
    if state.world.leads:
        prune_checkpoints(where, keep)
    return state.step


def _not_finite(state: TrainState, parts: Sequence[Any], loss: float, norm: float, folder: Path) -> IncompleteError:
    path = folder / "failures" / f"step_{state.step:08d}_rank_{state.world.process}.pt"
    record = {"step": state.step, "loss": loss, "grad_norm": norm, "parts": [part.dump() for part in parts]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(record, path)
        where = f"look at the batch in {path}"
    except (OSError, RuntimeError) as error:  # a full disk must not hide why the run stopped
        where = f"the batch could not be saved ({error})"
    return IncompleteError(
        f"the loss or the gradient is not finite at step {state.step}",
        seen=f"loss {loss}, gradient norm {norm}",
        allowed="finite numbers",
        remedy=f"{where}; a lower optim.lr, a clip_norm or a larger objective.time_low may help",
    )
