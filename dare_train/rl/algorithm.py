"""What a reinforcement-learning algorithm is: a row of parts and constants. No loop, no network, no data here.

An algorithm file in ``dare_train.algorithms`` (or of an outside package, entry point ``dare.algorithms``) holds one
``ALGORITHM = Algorithm(...)``. The rollout reads ``recorder`` and ``rollout``; the update (``dare_train.rl.update``)
asks the parts in this order:

    advantage   completions of a batch -> samples with their advantages
    corruptor   one sample, random numbers -> noised rows, positions to score, weights
    scorer      noised rows -> log-probabilities (``dare_train.scorer``, the same for all)
    reducer     log-probabilities -> values of units (tokens, rows or whole responses)
    objective   value, old value, advantage -> loss of a unit
    aggregator  weights and denominators of the units; ``kl`` and ``distil`` add their terms

Every part is a frozen dataclass, so a preset or a YAML file replaces single constants by name:

    find_algorithm("d1").with_settings({"objective": {"clip_low": 0.2}, "updates_per_rollout": 4})
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dare_eval.errors import UsageError, unknown
from dare_eval.registry import Registry
from dare_train.rl.checks import one_of, within

RECORDERS = ("final", "step_map", "states", "tree")
LOSS_REGIONS = ("to_first_eos", "to_eos_block", "all")
IDENTITY = ("name", "about", "paper", "recorder", "undefined", "defined_blocks", "on_blocks", "presets")
"""Fields that say what an algorithm is; its parts rely on them, so they are no constants to replace."""
ALGORITHMS = Registry(
    "algorithm",
    "dare.algorithms",
    {
        name: f"dare_train.algorithms.{name}:ALGORITHM"
        for name in (
            "bgpo",
            "cj_grpo",
            "coupled_grpo",
            "d1",
            "dtreerpo",
            "ebpo",
            "elbo_grpo",
            "espo",
            "justgrpo",
            "mdpo",
            "spg",
        )
    },
    instance_of="dare_train.rl.algorithm:Algorithm",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kl:
    """A pull back to the reference policy, per unit."""

    kind: str = "k3"
    """``k1``, ``abs``, ``k2`` or ``k3`` (``dare_train.estimators.kl_estimate``)."""
    coef: float = 0.0
    per_length: bool = False
    """Divide the estimate of a whole response by its length."""
    sync_every: int = 0
    """Optimizer steps after which the reference takes up the policy; 0 never."""
    sync_share: float = 1.0
    """Share of the policy in the new reference; the rest stays."""

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("kl.kind", self.kind, ("k1", "abs", "k2", "k3"))
        within("kl.coef", self.coef, 0.0)
        within("kl.sync_share", self.sync_share, 0.0, 1.0)
        within("kl.sync_every", self.sync_every, 0)

    @property
    def active(self) -> bool:
        """Whether reference values are needed at all."""
        return self.coef != 0.0


class NetworkFacts(Protocol):
    """What an algorithm has to know of a network; ``dare_eval.networks.NetworkConfig`` has it."""

    family: str
    mask_id: int
    pad_id: int
    eos_id: int
    shift: bool
    block_length: int | None


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A row of parts and constants; see the module text for the order in which they act."""

    name: str
    about: str
    """One line for tables and ``--help``."""
    paper: str
    recorder: str
    """What a rollout keeps: ``final``, ``step_map``, ``states`` or ``tree`` (``dare_train.rl.trajectory``)."""
    advantage: Any
    corruptor: Any
    reducer: Any
    objective: Any
    aggregator: Any
    kl: Kl = Kl()
    distil: Any = None
    """Self-distillation between siblings of a tree, or None."""
    loss_region: str = "to_first_eos"
    """Response tokens that count: ``to_first_eos`` (that EOS included), ``to_eos_block`` (its block too), ``all``."""
    updates_per_rollout: int = 1
    """Passes over one rollout's completions; each draws its own noise, all before the first update."""
    minibatches: int = 1
    """Optimizer steps in one such pass."""
    temperature: str = "one"
    """Temperature of the scored distribution: ``one`` or ``rollout`` (the one completions were sampled with)."""
    rollout: Mapping[str, Any] = field(default_factory=dict)
    """Decoding settings that the algorithm is defined with, such as ``block_length: 1``."""
    undefined: Mapping[str, str] = field(default_factory=dict)
    """Kinds of network (``masked``, ``block``) or families it is not defined for, and why."""
    defined_blocks: tuple[int, ...] = ()
    """Block lengths for which ``undefined`` does not hold."""
    on_blocks: Mapping[str, Any] = field(default_factory=dict)
    """Fields with another value on block-causal networks."""
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Named variants: settings as for ``with_settings``."""

    def __post_init__(self) -> None:
        """Refuse constants that mean nothing."""
        one_of("recorder", self.recorder, RECORDERS)
        one_of("loss_region", self.loss_region, LOSS_REGIONS)
        one_of("temperature", self.temperature, ("one", "rollout"))
        within("updates_per_rollout", self.updates_per_rollout, 1)
        within("minibatches", self.minibatches, 1)

    def resolve(self, facts: NetworkFacts) -> Algorithm:
        """Return the algorithm as it is for this network.

        Raises ``UsageError`` with the reason when it is not defined there.
        """
        kind = "masked" if facts.block_length is None else "block"
        for key in (kind, facts.family):
            if key in self.undefined and facts.block_length not in self.defined_blocks:
                raise UsageError(
                    f"{self.name} is not defined for this network: {self.undefined[key]}",
                    seen=f"family {facts.family}" + (f", blocks of {facts.block_length}" if kind == "block" else ""),
                    allowed="block-causal networks (sdar, llada2)" if kind == "masked" else "llada, llada_moe, dream",
                    remedy="another --algo or another base",
                )
        if kind == "block" and self.on_blocks:
            return dataclasses.replace(self, **self.on_blocks)
        return self

    def with_settings(self, settings: Mapping[str, Any]) -> Algorithm:
        """Return the algorithm with single constants replaced: names of fields, or of fields of its parts."""
        found: Algorithm = replaced(self, settings, self.name)
        return found

    def describe(self) -> dict[str, Any]:
        """Return all constants, JSON-ready, for the manifest."""
        hidden = ("about", "presets", "undefined", "on_blocks")
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name not in hidden}


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm or the named variant of one (``d1_dare``); ``UsageError`` with the nearest name."""
    if name in ALGORITHMS:
        found: Algorithm = ALGORITHMS.get(name)
        return found
    for base in ALGORITHMS.names():
        if not name.startswith(base):
            continue
        algorithm: Algorithm = ALGORITHMS.get(base)
        if name in algorithm.presets:
            variant = algorithm.with_settings(algorithm.presets[name])
            return dataclasses.replace(variant, name=name)
    raise unknown("algorithm", name, algorithm_names())


def algorithm_names() -> list[str]:
    """Return every algorithm and named variant, sorted."""
    bases = ALGORITHMS.loadable()
    return sorted([*bases, *(preset for algorithm in bases.values() for preset in algorithm.presets)])


def replaced(part: Any, settings: Mapping[str, Any], path: str) -> Any:
    """Return the dataclass ``part`` with ``settings`` applied, going into nested parts.

    Raises ``UsageError`` for an unknown name (with the nearest) and for a value of another type.
    """
    names = {f.name: f.default for f in dataclasses.fields(part)}
    if isinstance(part, Algorithm):
        names = {name: default for name, default in names.items() if name not in IDENTITY}
    changes: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in names:
            raise unknown(f"constant of {path}", key, names)
        now = getattr(part, key)
        if dataclasses.is_dataclass(now) and isinstance(value, Mapping):
            changes[key] = replaced(now, value, f"{path}.{key}")
        elif isinstance(now, Mapping) and isinstance(value, Mapping):
            changes[key] = {**now, **value}
        elif value is None and names[key] is None:
            changes[key] = None  # what an algorithm need not have may be switched off
        else:
            changes[key] = _fitting(now, value, f"{path}.{key}")
    return dataclasses.replace(part, **changes)


def _fitting(now: Any, value: Any, path: str) -> Any:
    """Return ``value`` in the type of the constant it replaces."""
    if isinstance(now, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{path} is no finite number", seen=str(value), remedy=f"its value is {now!r}")
    if dataclasses.is_dataclass(value) and (now is None or dataclasses.is_dataclass(now)):
        return value
    if isinstance(value, type(now)) and isinstance(value, bool) == isinstance(now, bool) and now is not None:
        return value
    raise UsageError(
        f"{path} is of another type", seen=f"{value!r}", allowed=type(now).__name__, remedy=f"its value is {now!r}"
    )


def plain(value: Any) -> Any:
    """Return a part as names and constants."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"part": type(value).__name__, **inner}
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return value


__all__ = ["ALGORITHMS", "Algorithm", "Kl", "NetworkFacts", "algorithm_names", "find_algorithm", "replaced"]
