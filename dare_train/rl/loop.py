"""Reinforcement learning inside the one training loop: sample, judge, prepare, then a few optimizer steps.

The loop asks for the work of one optimizer step after the other; every ``per_rollout``-th of them begins with a
rollout. Answers of one decoded batch are judged while the next is decoded. Everything follows from the seed and the
step, apart from the batches of a rollout that is half used and a reference that has moved: those are saved beside
the checkpoint, so that a run stopped anywhere goes on exactly. Leaves out the algorithm (``dare_train.rl.update``).
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dare_eval.errors import DataError, IncompleteError, UsageError
from dare_train.algorithms.common import Demand
from dare_train.draws import derive
from dare_train.engine.metrics import MetricsFile
from dare_train.rl.anchor import Anchor
from dare_train.rl.backends import RolloutBackend
from dare_train.rl.collect import Clock, Collected, Collector
from dare_train.rl.gather import gathered
from dare_train.rl.heldout import heldout_scores
from dare_train.rl.named import named_weights
from dare_train.rl.parts import Parts
from dare_train.rl.records import sample_line
from dare_train.rl.watch import divided, rollout_sums

SPENT = ("prompts", "rollouts", "rollout_nfe", "rollout_tokens", "reward_calls")
"""Counters of a run beside those of the loop, over all processes."""


@dataclass(frozen=True, slots=True)
class RlPart:
    """The work of one optimizer step: a batch and the figures of the rollout it came from."""

    batch: Any
    figures: Mapping[str, float]

    def dump(self) -> dict[str, Any]:
        """Return the batch for a failure report."""
        return {"batch": self.batch.dump(), "figures": dict(self.figures)}


@dataclass(slots=True)
class Held:
    """The rollout whose batches are being used."""

    number: int = -1
    batches: list[Any] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


class Reinforce:
    """The training loop's view of reinforcement learning (``engine.loop.Algorithm``)."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.updater, self.algorithm = parts, parts.updater, parts.updater.algorithm
        self.per_rollout = self.algorithm.updates_per_rollout * self.algorithm.minibatches
        self.held, self.step = Held(), 0
        self.spent = dict.fromkeys(SPENT, 0.0)
        self._network: Any = None
        self._backend: RolloutBackend | None = None
        self._anchor: Anchor | None = None
        self._samples: MetricsFile | None = None

    def begin(self, network: Any, build: Callable[[], Any]) -> None:
        """Take the network: it decodes the rollouts; keep it as it is as the reference where one is needed."""
        self._network = network
        self._backend = self.parts.open_backend(network)
        if self.algorithm.kl.active:
            self._anchor = Anchor(network, build, self.algorithm.kl)

    def work(self, step: int) -> list[RlPart]:
        """Return the batch of optimizer step ``step``, after a rollout where one is due."""
        number, inner = divmod(step, self.per_rollout)
        if number != self.held.number:
            if inner:
                raise DataError("the checkpoint lacks the rollout that is half used", seen=f"step {step}")
            with self._cast():
                self._roll(number, step)
        self.step = step + 1
        # A rollout with fewer problems than minibatches has fewer batches; they are gone through again.
        return [RlPart(self.held.batches[inner % len(self.held.batches)], self.held.figures)]

    def backward(self, network: Any, part: RlPart) -> Mapping[str, float]:
        """Add the gradient of the step and return what it cost, the figures of its rollout included."""
        found = dict(self.updater.backward(network, part.batch))
        mine = part.figures if self.parts.world.leads else dict.fromkeys(part.figures, 0.0)
        return {**mine, **found}

    def evaluate(self, network: Any) -> dict[str, list[float]]:
        """Return the exact score of every held-out problem of this process, decoded greedily."""
        if not self.parts.heldout:
            return {}
        with self._cast(), self._rolling() as backend:
            found = heldout_scores(self.parts, backend)
        total = self.parts.world.sums({"right": sum(found["exact"]), "n": float(len(found["exact"]))})
        if not total["n"]:
            return {}
        self.parts.collapse.heldout(self.step, total["right"] / total["n"], int(total["n"]))
        return found

    def describe(self) -> dict[str, Any]:
        """Return the resolved algorithm and rollout for the manifest."""
        specs = {"rollout_spec": self.parts.spec, "heldout_spec": self.parts.heldout_spec}
        given = {name: {k: v for k, v in spec.to_dict().items() if v not in (None, [])} for name, spec in specs.items()}
        return {**self.algorithm.describe(), **given}

    def demand(self) -> Demand:
        """Return what an optimizer step asks for, a prompt being a row: its completions, rollout and scoring."""
        parts = self.parts
        longer = (parts.prompt_tokens + parts.spec.gen_length) / max(1.0, parts.prompt_tokens)
        passes = float(parts.spec.steps or parts.spec.gen_length) / self.per_rollout
        scored = float(self.updater.needs_old) + float(self.algorithm.kl.active)
        return Demand(
            at_once=self.updater.rows_per_forward * longer,
            noised=parts.group_size * longer,
            plain_passes=passes + scored,
            reference=self.algorithm.kl.active,
        )

    def state(self) -> dict[str, Any]:
        """Return what resuming needs; what is no JSON goes to a file of this process."""
        kept = {"collapse": self.parts.collapse.state(), "spent": dict(self.spent), "step": self.step, "processes": 0}
        inside, moved = self.step % self.per_rollout != 0, self._anchor is not None and self._anchor.moved
        if inside or moved:
            path = self._file(self.step)
            path.parent.mkdir(parents=True, exist_ok=True)
            held = (self.held.number, self.held.batches, self.held.figures) if inside else None
            anchor = self._anchor.state() if self._anchor is not None and moved else None
            if self.parts.world.column_rank == 0:
                torch.save({"held": held, "anchor": anchor}, path)
                self._prune(path)
            kept["processes"] = self.parts.world.size
        return kept

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state of a checkpoint; raises ``UsageError`` for another number of processes inside a rollout."""
        self.parts.collapse.restore(state["collapse"])
        self.spent = {name: float(state["spent"].get(name, 0.0)) for name in SPENT}
        self.step, wrote = int(state["step"]), int(state["processes"])
        if not wrote:
            return
        if wrote != self.parts.world.size:
            raise UsageError(
                "a checkpoint inside a rollout, or with a reference that moved, needs as many processes as wrote it",
                seen=f"{self.parts.world.size} processes",
                allowed=str(wrote),
                remedy=f"--nproc {wrote}",
            )
        try:
            content = torch.load(self._file(self.step), weights_only=False)
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
            raise DataError(
                f"the rollout of the checkpoint cannot be read: {error}",
                seen=self._file(self.step),
                remedy="remove that checkpoint to continue from the one before, or train afresh with --fresh",
            ) from error
        if content["held"] is not None:
            self.held = Held(*content["held"])
        if content["anchor"] is not None and self._anchor is not None:
            self._anchor.restore(content["anchor"])

    def _roll(self, number: int, step: int) -> None:
        """Sample, judge and prepare rollout ``number``."""
        parts, times, first = self.parts, Clock(), number * self.parts.prompts
        keyed = parts.world.share(list(enumerate(parts.supply.take(first, parts.prompts), start=first)))
        with self._rolling() as backend:
            collector = Collector(parts=parts, backend=backend, recorder=self.algorithm.recorder)
            found = collector.collect(keyed, times)
        self._check_scored(found)
        if self._anchor is not None:
            self._anchor.follow(self._network, step, self.per_rollout)
        progress = step / max(1, parts.max_steps)
        batches = self.updater.passes(found.trajectories, seed=derive(parts.seed, "noise", number), progress=progress)
        batches = self._anchored(batches)
        figures = self._figures(found)
        times.lap("score_s")
        self.held = Held(number, batches, figures | {name: s / self.per_rollout for name, s in times.laps.items()})
        self._account(found)
        self._note(step, number, found)
        parts.collapse.rollout(step, figures, parts.spec.temperature, parts.group_size)

    def _anchored(self, batches: list[Any]) -> list[Any]:
        """Return the batches with old and reference values; passes without noise of their own are scored once."""
        known: dict[str, Any] = {}
        found = []
        with self._reference() as reference:
            for batch in batches:
                same = known.get(batch.digest())
                agreed = self.parts.world.sums({"same": float(same is not None)})["same"] == self.parts.world.size
                if same is None or not agreed:
                    batch = self.updater.anchored(batch, self._network, reference)
                else:
                    batch = batch.with_values(old=same.old_U, ref=same.ref_U)
                known[batch.digest()] = batch
                found.append(batch)
        return found

    def _check_scored(self, found: Collected) -> None:
        scored = sum(trajectory.reward is not None for trajectory in found.trajectories)
        if not self.parts.world.sums({"scored": float(scored)})["scored"]:
            raise IncompleteError(
                "no completion of a rollout could be scored",
                seen=next((o.error for group in found.outcomes for o in group if o.error), "no reward"),
                remedy="look at the reward: every sample is unscored",
            )

    def _figures(self, found: Collected) -> dict[str, float]:
        """Return the figures of the rollout over all processes."""
        with gathered(self._network):
            watched = self.parts.watcher.sums(self._network, found.rows)
        sums = {**rollout_sums(found.groups, found.outcomes), **watched}
        flat = {f"{name}/{part}": value for name, pair in sums.items() for part, value in zip("sn", pair, strict=True)}
        total = self.parts.world.sums(flat)
        figures = divided({name: (total[f"{name}/s"], total[f"{name}/n"]) for name in sums})
        return figures | {"unscored": total["unscored/s"]}

    def _account(self, found: Collected) -> None:
        results = [rollout.result for rollout in found.rows]
        spent = {
            "prompts": float(len(found.groups)),
            "rollouts": float(len(results)),
            "rollout_nfe": float(sum(result.nfe for result in results)),
            "rollout_tokens": float(sum(result.generated_tokens for result in results)),
            "reward_calls": float(found.reward_calls),
        }
        for name, value in self.parts.world.sums(spent).items():
            self.spent[name] += value

    def _note(self, step: int, number: int, found: Collected) -> None:
        """Write some of the completions of some rollouts to ``samples.jsonl``."""
        parts = self.parts
        if not parts.world.leads or number % parts.samples_every:
            return
        if self._samples is None:
            self._samples = MetricsFile(parts.folder / "samples.jsonl", keep_until=step - 1)
        for group, judged in list(zip(found.groups, found.outcomes, strict=True))[: parts.samples]:
            self._samples.append(sample_line(step, number, group, judged))

    def _cast(self) -> Any:
        """Return the precision of the update: old values must be those that its first forward would give."""
        device = next(self._network.parameters()).device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.parts.precision == "bf16")

    @contextlib.contextmanager
    def _rolling(self) -> Iterator[RolloutBackend]:
        """Give the backend while it is awake and has the newest weights."""
        assert self._backend is not None
        self._backend.wake()
        self._backend.sync(named_weights(self._network), self.step)
        try:
            yield self._backend
        finally:
            self._backend.sleep()

    @contextlib.contextmanager
    def _reference(self) -> Iterator[Any]:
        if self._anchor is None:
            yield None
            return
        with self._anchor.of(self._network) as reference:
            yield reference

    def _prune(self, newest: Path) -> None:
        """Remove this process's files of checkpoints that are gone."""
        wanted = {path.name for path in (self.parts.folder / "checkpoints").glob("step_*")}
        for path in newest.parent.glob(f"step_*_rank{self.parts.world.rank}.pt"):
            if path != newest and path.name.partition("_rank")[0] not in wanted:
                path.unlink()

    def _file(self, step: int) -> Path:
        return self.parts.folder / "rollouts" / f"step_{step:08d}_rank{self.parts.world.rank}.pt"
