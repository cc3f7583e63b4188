"""Puts a reinforcement-learning run together from its settings; everything is checked before a weight is read."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dare_eval.decoding.canvas import is_block_causal, lay_out
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from dare_train.rl.algorithm import Algorithm, find_algorithm
from dare_train.rl.backends import BACKENDS, BackendFacts, RolloutBackend, check_backend
from dare_train.rl.collapse import CollapseWatch
from dare_train.rl.config import RlConfig
from dare_train.rl.loop import Reinforce
from dare_train.rl.parts import Parts
from dare_train.rl.reward_pool import RewardPool
from dare_train.rl.rewards import JudgePlan
from dare_train.rl.rollout import rollout_spec
from dare_train.rl.trees import TreeShape, cuts
from dare_train.rl.update import Updater
from dare_train.rl.watch import Watcher
from dare_train.scorer import Scorer

if TYPE_CHECKING:
    from dare_train.run import Prepared

TREE_KEYS = {"root_children": "samples", "branch": "branches", "levels": "levels"}
ROWS_PER_FORWARD = 64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A run's algorithm and decoding on one network, checked against each other."""

    algorithm: Algorithm
    spec: DecodeSpec
    heldout_spec: DecodeSpec
    tree: TreeShape
    group_size: int


def resolve(config: RlConfig, network: Any) -> Resolved:
    """Return what ``config`` means on ``network``.

    Raises ``UsageError`` for an unknown or undefined algorithm, constants or decoding settings that do not fit.
    """
    algorithm = find_algorithm(config.algo).resolve(network).with_settings(config.algorithm)
    fixed = {key: value for key, value in algorithm.rollout.items() if key not in TREE_KEYS}
    spec = rollout_spec(config.rollout, network, fixed)
    tree = TreeShape(**{TREE_KEYS[key]: _whole(key, n) for key, n in algorithm.rollout.items() if key in TREE_KEYS})
    group_size = config.rollout.group_size
    if algorithm.recorder == "tree":
        cuts(spec, tree.levels)
        group_size = tree.leaves
    if group_size < 2:
        raise UsageError(
            "completions of one prompt are compared with each other, so there must be several",
            seen=f"rollout.group_size = {group_size}",
            allowed="2 or more",
        )
    if spec.temperature == 0:
        raise UsageError(
            "greedy completions of one prompt are all the same", seen="rollout.temperature = 0", allowed="above 0"
        )
    if algorithm.recorder in ("step_map", "states") and spec.edit_threshold is not None:
        raise UsageError(
            f"{algorithm.name} scores tokens in the state in which they were fixed, and edited tokens have several",
            seen=f"edit_threshold = {spec.edit_threshold}",
            remedy="leave rollout.decoding.edit_threshold out",
        )
    greedy = config.rollout.model_copy(update={"steps": config.watch.heldout_steps or config.rollout.steps})
    heldout = rollout_spec(greedy, network, {"temperature": 0.0, "top_p": None, "top_k": None})
    is_block_causal(network, spec)
    check_backend(config.rollout.backend, algorithm.name, algorithm.recorder, (spec, heldout))
    return Resolved(algorithm=algorithm, spec=spec, heldout_spec=heldout, tree=tree, group_size=group_size)


def _whole(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"algorithm.rollout.{key} is no whole number", seen=repr(value), allowed="1, 2, 3, ...")
    return value


def build_rl(prepared: Prepared) -> Reinforce:
    """Return the algorithm of a prepared run."""
    config, network = prepared.config, prepared.plan.config
    assert isinstance(config, RlConfig)
    found = resolve(config, network)
    _check_plain(config)
    _check_room(prepared, found.spec)
    scorer = Scorer(shift=network.shift, block_length=network.block_length, pack=config.train.packing)
    updater = Updater(
        found.algorithm,
        network,
        scorer,
        world=prepared.world,
        rows_per_forward=config.train.micro_batch_size or ROWS_PER_FORWARD,
        rollout_temperature=found.spec.temperature,
        device=prepared.device,
    )
    judge = JudgePlan(
        kind=config.reward.kind,
        options=config.reward.options,
        graded=config.reward.graded,
        shaping=config.reward.shaping,
    )
    rewards = RewardPool(judge, workers=config.reward.workers, limit_s=config.reward.limit_s)
    plain = rewards if judge == JudgePlan() else RewardPool(JudgePlan(), workers=min(1, config.reward.workers))
    parts = Parts(
        updater=updater,
        supply=prepared.rows.supply(config.seed),
        heldout=prepared.rows.heldout,
        open_backend=partial(_backend, config, found.spec),
        tokenizer=prepared.plan.tokenizer,
        network=network,
        spec=found.spec,
        heldout_spec=found.heldout_spec,
        rewards=rewards,
        verifier=plain,
        watcher=_watcher(config, prepared, scorer, found.spec),
        collapse=CollapseWatch(drop=config.watch.drop, entropy_floor=config.watch.entropy_floor),
        tree=found.tree,
        world=prepared.world,
        seed=config.seed,
        prompts=config.train.batch_size,
        group_size=found.group_size,
        rows_per_batch=config.rollout.rows_per_batch,
        prompt_tokens=prepared.rows.row_tokens,
        precision=config.train.precision,
        max_steps=config.train.max_steps,
        samples_every=config.watch.samples_every,
        samples=config.watch.samples,
        folder=Path(config.output_dir),
    )
    return Reinforce(parts)


def _watcher(config: RlConfig, prepared: Prepared, scorer: Scorer, spec: DecodeSpec) -> Watcher:
    network = prepared.plan.config
    return Watcher(
        scorer=scorer,
        spec=spec,
        mask_id=network.mask_id,
        pad_id=network.pad_id,
        rows=config.watch.rows,
        seed=config.seed,
        device=prepared.device,
    )


def _backend(config: RlConfig, spec: DecodeSpec, network: Any) -> RolloutBackend:
    facts = BackendFacts(
        network=network,
        folder=config.model.base or "",
        attn_backend=config.rollout.attn_backend,
        options=dict(config.rollout.options),
        spec=spec,
    )
    made: RolloutBackend = BACKENDS.get(config.rollout.backend)(facts)
    return made


def _check_room(prepared: Prepared, spec: DecodeSpec) -> None:
    """Refuse the longest prompt when no answer fits behind it, before the run and not when its turn comes."""
    longest = max((*prepared.rows.kept, *prepared.rows.heldout), key=lambda problem: len(problem.prompt), default=None)
    if longest is not None:
        lay_out([list(longest.prompt)], spec, prepared.plan.config, torch.device("cpu"))


def _check_plain(config: RlConfig) -> None:
    if config.model.lora and config.model.lora.dropout:
        raise UsageError(
            "log-probabilities of the old and the new policy are compared, which dropout would blur",
            seen=f"model.lora.dropout = {config.model.lora.dropout}",
            allowed="0",
        )
