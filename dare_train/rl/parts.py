"""What a reinforcement-learning run is made of, before it has a network; ``dare_train.rl.build`` fills it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.spec import DecodeSpec
from dare_train.data.supply import Supply
from dare_train.engine.world import World
from dare_train.rl.backends import RolloutBackend
from dare_train.rl.collapse import CollapseWatch
from dare_train.rl.problems import Problem
from dare_train.rl.reward_pool import RewardPool
from dare_train.rl.trees import TreeShape
from dare_train.rl.update import Updater
from dare_train.rl.watch import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of; everything is checked and none of it has a network yet."""

    updater: Updater
    supply: Supply[Problem]
    heldout: Sequence[Problem]
    open_backend: Callable[[Any], RolloutBackend]
    """Makes the rollout's backend when the network is there."""
    tokenizer: Any
    network: Any
    """``NetworkConfig``."""
    spec: DecodeSpec
    heldout_spec: DecodeSpec
    rewards: RewardPool
    verifier: RewardPool
    """Judges held-out answers, whatever the run is rewarded with."""
    watcher: Watcher
    collapse: CollapseWatch
    tree: TreeShape
    world: World
    seed: int
    prompts: int
    """Problems of a rollout, over all processes."""
    group_size: int
    rows_per_batch: int | None
    prompt_tokens: float
    """Mean length of a prompt."""
    precision: str
    """``bf16`` or ``full``, as in the update."""
    max_steps: int
    samples_every: int
    samples: int
    folder: Path
