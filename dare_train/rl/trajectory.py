"""What a rollout hands to an update: one record per completion (or per tree), with nothing to look up elsewhere.

A recorder says which of the optional parts a rollout must keep (``dare_train.rl.algorithm``):

    final      prompt, response, reward
    step_map   also the step at which each token was fixed
    states     also the response before each step, the prediction there, its confidence, and a reward per step
    tree       a tree of states instead of one response, with a reward per leaf

Shape suffixes: R response positions, K recorded steps, N nodes of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from dare_eval.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """States of one prompt's rollout tree; node 0 is the root and a parent comes before its children."""

    parent: tuple[int, ...]
    """Parent of each node, -1 for the root."""
    states_NR: Tensor
    """Response at each node, masks included; a leaf has none left before its first EOS."""
    steps: tuple[int, ...] = ()
    """Denoising step at which each node was recorded."""
    leaf_rewards: tuple[float, ...] = ()
    """One per leaf, in node order."""

    def __post_init__(self) -> None:
        """Refuse a tree whose parts do not fit together."""
        late = [node for node, parent in enumerate(self.parent) if parent >= node or (parent < 0) != (node == 0)]
        if late or len(self.states_NR) != len(self.parent):
            raise DataError(
                "a rollout tree needs one state per node, a single root and parents before their children",
                seen=f"parents {self.parent}, {len(self.states_NR)} states",
            )

    @property
    def leaves(self) -> list[int]:
        """Nodes without children, in order."""
        inner = set(self.parent)
        return [node for node in range(len(self.parent)) if node not in inner]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One completion of one prompt."""

    prompt: tuple[int, ...]
    response: tuple[int, ...]
    """The whole decoded region, EOS and what follows it included; masks only behind the first EOS."""
    group: int
    """Completions of one prompt share it. A group must not be split over processes: advantages compare its members."""
    reward: float | None = None
    """None where the verifier failed; such a completion counts as 0 unless the loop drops it."""
    step_map: tuple[int, ...] | None = None
    """0-based step that fixed each position, -1 never; block-causal networks: of the whole response, in order."""
    states_KR: Tensor | None = None
    """Response before each recorded step."""
    proposals_KR: Tensor | None = None
    """Predicted token of every position at each recorded step; -1 where nothing was predicted."""
    confidence_KR: Tensor | None = None
    """Probability of those predictions."""
    step_rewards: tuple[float, ...] | None = None
    """Reward of the prediction at each recorded step."""
    tree: Tree | None = None
    rollout_logps: tuple[float, ...] | None = None
    """log p of each response token when it was fixed, as the rollout saw it (cached, thresholded): for comparison."""
    seed: int = 0
    """Unique in the run; seeds this completion's noise, so that noise does not depend on the batch."""
    temperature: float = 1.0
    """Sampling temperature of the rollout."""
    nfe: int = 0
    """Forwards of the rollout."""
    eos: bool = False
    """The response ends with EOS."""
    truncated: bool = False
    """The response ran into its length limit."""
    extra: dict[str, object] = field(default_factory=dict)
    """What the loop keeps for the record (item id, text, score)."""


def require(trajectories: Sequence[Trajectory], recorder: str) -> None:
    """Raise ``DataError`` when a trajectory lacks what ``recorder`` promises."""
    needed = {
        "final": (),
        "step_map": ("step_map",),
        "states": ("states_KR", "proposals_KR", "confidence_KR", "step_rewards"),
        "tree": ("tree",),
    }[recorder]
    for number, trajectory in enumerate(trajectories):
        missing = [name for name in needed if getattr(trajectory, name) is None]
        if missing:
            raise DataError(
                f"the rollout recorded too little for this algorithm (recorder '{recorder}')",
                seen=f"completion {number} without {', '.join(missing)}",
            )
