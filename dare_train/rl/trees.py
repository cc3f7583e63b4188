"""Rollout trees (d-TreeRPO, arXiv 2512.09675): completions that share their beginning, branched at several depths.

With ``s`` levels a branch stands at every s-th part of the way: at a border between blocks where a response has
several, else at a step. A child's first branch is its own continuation and only its siblings are decoded anew from
the shared state, so a tree of 1 + 4 + 16 nodes costs 4 whole and 12 half rollouts. States are read from the step
map, which holds for decoding without remasking.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.decoding import DecodeResult
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec
from dare_train.rl.backends import Request
from dare_train.rl.checks import within
from dare_train.rl.problems import Problem
from dare_train.rl.rollout import Finished, Rollout, Sampler, completion_seed
from dare_train.rl.trajectory import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """How a tree branches."""

    samples: int = 4
    """Children of the root."""
    branches: int = 4
    """Children of every other inner node."""
    levels: int = 2
    """Depth of the leaves."""

    def __post_init__(self) -> None:
        """Refuse trees in which nothing is compared."""
        within("rollout.root_children", self.samples, 2)
        within("rollout.branch", self.branches, 2)
        within("rollout.levels", self.levels, 1)

    @property
    def leaves(self) -> int:
        """Leaves of one tree."""
        return int(self.samples * self.branches ** (self.levels - 1))


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where trees branch: blocks that are whole, or passes that are done in the only block."""

    blocks: int | None
    passes: int | None

    def state(self, result: DecodeResult, spec: DecodeSpec, mask_id: int) -> list[int]:
        """Return the response at the cut, masks where nothing stood yet.

        Passes are counted from the row's first that reveals: storing a full block of its prompt is a forward before.
        """
        if self.blocks is not None:
            whole = self.blocks * spec.block_length
            return [token if at < whole else mask_id for at, token in enumerate(result.response)]
        assert self.passes is not None
        first = min((step for step in result.step_map if step >= 0), default=0)
        steps = zip(result.response, result.step_map, strict=True)
        return [token if 0 <= step < first + self.passes else mask_id for token, step in steps]

    def rest(self, spec: DecodeSpec) -> DecodeSpec:
        """Return the settings of what is left to decode after the cut."""
        if self.passes is None or spec.steps is None:
            return spec
        return dataclasses.replace(spec, steps=spec.steps - self.passes)


def cuts(spec: DecodeSpec, levels: int) -> list[Cut]:
    """Return where the inner levels branch, the shallowest first; ``UsageError`` when there are too few places."""
    if spec.schedule == "ascending" or spec.edit_threshold is not None:
        raise UsageError(
            "a rollout tree needs equal blocks and tokens that stay",
            seen=f"schedule {spec.schedule}, edit_threshold {spec.edit_threshold}",
        )
    by_block = spec.blocks > 1
    places = spec.blocks if by_block else spec.steps
    if places is None or places < levels:
        raise UsageError(
            "the response has too few places to branch at",
            seen=f"{spec.blocks} blocks, steps = {spec.steps}",
            allowed=f"at least {levels} blocks, or one block with a rule that has that many steps",
            remedy="rollout.policy = quota and rollout.steps, or a smaller rollout.block_length",
        )
    found = [places * level // levels for level in range(1, levels)]
    return [Cut(place, None) if by_block else Cut(None, place) for place in found]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A decoded completion and the states it has passed, one per level (the leaf last)."""

    place: int
    problem: Problem
    path: tuple[int, ...]
    seed: int
    result: DecodeResult


def sample_trees(
    sampler: Sampler,
    keyed: Sequence[tuple[int, Problem]],
    shape: TreeShape,
    *,
    mask_id: int,
    watched: int = 0,
    finished: Finished | None = None,
) -> list[list[Rollout]]:
    """Return the leaves of one tree per problem, in the order of their paths."""
    flat = dataclasses.replace(sampler, group_size=shape.samples)
    first = flat.groups(keyed, states=False, watched=watched)
    branches = [_Branch(r.place, r.problem, (r.number,), r.seed, r.result) for r in first]
    for cut in cuts(sampler.spec, shape.levels):
        branches = _grown(sampler, branches, cut, shape.branches, mask_id)
    texts = sampler.texts([branch.result for branch in branches])
    leaves = [
        Rollout(problem=b.problem, place=b.place, number=n % shape.leaves, seed=b.seed, result=b.result, text=text)
        for n, (b, text) in enumerate(zip(branches, texts, strict=True))
    ]
    if finished is not None:
        finished(leaves)
    return [leaves[start : start + shape.leaves] for start in range(0, len(leaves), shape.leaves)]


def _grown(sampler: Sampler, branches: Sequence[_Branch], cut: Cut, width: int, mask_id: int) -> list[_Branch]:
    """Return each branch with its ``width - 1`` new siblings behind the cut."""
    new = [(branch, number) for branch in branches for number in range(1, width)]
    size = sampler.rows_per_batch or max(1, len(new))
    found: dict[tuple[int, tuple[int, ...]], _Branch] = {}
    for start in range(0, len(new), size):
        part = new[start : start + size]
        seeds = [completion_seed(sampler.seed, b.place, number, *map(str, b.path)) for b, number in part]
        states = [cut.state(b.result, sampler.spec, mask_id) for b, _ in part]
        request = Request(
            prompts=[list(b.problem.prompt) for b, _ in part],
            seeds=seeds,
            spec=cut.rest(sampler.spec),
            committed=states,
        )
        for (branch, number), seed, state, result in zip(
            part, seeds, states, sampler.backend.generate(request), strict=True
        ):
            path = (*branch.path, number)
            found[branch.place, path] = _Branch(
                branch.place, branch.problem, path, seed, joined(branch.result, state, result, mask_id)
            )
    grown = []
    for branch in branches:
        grown.append(dataclasses.replace(branch, path=(*branch.path, 0)))
        grown += [found[branch.place, (*branch.path, number)] for number in range(1, width)]
    return grown


def joined(before: DecodeResult, state: Sequence[int], after: DecodeResult, mask_id: int) -> DecodeResult:
    """Return a completion that begins as ``before`` up to ``state``, with one step map; ``nfe`` is that of the rest.

    Passes of the rest are counted on from the last pass of the beginning.
    """
    stood = [step for step, token in zip(before.step_map, state, strict=True) if token != mask_id]
    offset = max(stood, default=-1) + 1
    used = sorted({step for step, token in zip(after.step_map, state, strict=True) if token == mask_id and step >= 0})
    rank = {step: offset + place for place, step in enumerate(used)}
    steps = [
        old if token != mask_id else rank.get(new, -1)
        for old, new, token in zip(before.step_map, after.step_map, state, strict=True)
    ]
    return dataclasses.replace(after, step_map=steps, trace=None)


def build_tree(leaves: Sequence[Rollout], spec: DecodeSpec, shape: TreeShape, mask_id: int) -> Tree:
    """Return the tree of one problem's leaves; rewards are added when they are known.

    Node 0 is the fully masked root; nodes of a level follow those of the level above.
    """
    places = cuts(spec, shape.levels)
    length = len(leaves[0].result.response)
    parents, states, steps = [-1], [[mask_id] * length], [0]
    above, width = [0], shape.samples
    for level in range(shape.levels):
        per_node = len(leaves) // (len(above) * width)
        here = []
        for number in range(len(above) * width):
            leaf = leaves[number * per_node]
            last = level == shape.levels - 1
            states.append(list(leaf.result.response) if last else places[level].state(leaf.result, spec, mask_id))
            parents.append(above[number // width])
            steps.append((level + 1) * (spec.steps or spec.blocks) // shape.levels)
            here.append(len(parents) - 1)
        above, width = here, shape.branches
    states_NR: Tensor = torch.tensor(states)
    return Tree(parent=tuple(parents), states_NR=states_NR, steps=tuple(steps))
