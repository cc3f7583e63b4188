"""One denoising step of blocks inside an engine: the same samplers and policies as in-process decoding.

An engine hands over the logits of one block per request and keeps the block; this decides which positions are
committed. Requests may be at different steps and have different sampling settings. No engine is imported here, so
the rules are tested on the CPU; ``sglang_algorithm`` puts them behind SGLang's interface.

Legend: R requests, K block length, V vocabulary, N = R x K.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from dare_eval.decoding.policies.base import Policy
from dare_eval.decoding.rows import generator_of
from dare_eval.decoding.sampler import ValueSampler
from dare_eval.decoding.schedule import Block, Budget
from dare_eval.decoding.step import Step
from dare_eval.engines.rules import rules_text
from dare_eval.errors import DataError, UsageError
from dare_eval.spec import POLICIES, DecodeSpec


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Ids that the rules treat apart."""

    mask_id: int
    eos_id: int
    eot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a request asks for; requests that agree are drawn together."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None


@dataclass(slots=True)
class BlockState:
    """One request's block between steps."""

    seed: str
    """Name of its random numbers: equal on all ranks of a tensor-parallel group, different between blocks."""
    masks: int
    """Masks when the block began."""
    step: int = 0
    """Steps done."""
    step_map: list[int] = field(default_factory=list)
    """1-based step that committed each position, 0 where none did."""
    rules: str = ""
    """What decides it, for the client to compare."""


class BlockRules:
    """The rules of one DecodeSpec."""

    def __init__(self, spec: DecodeSpec, ids: SpecialIds) -> None:
        if spec.edit_threshold is not None or spec.cfg_scale > 0 or spec.eos_gamma is not None:
            raise UsageError(
                "engines decode without token editing, guidance and EOS weights",
                seen=f"edit_threshold {spec.edit_threshold}, cfg_scale {spec.cfg_scale}, eos_gamma {spec.eos_gamma}",
                remedy="leave the engine out: the native decoder has them",
            )
        self.spec, self.ids, self.text = spec, ids, rules_text(spec)
        self.policy: Policy = POLICIES.get(spec.policy)(spec)
        self.budget = Budget(spec, causal=True)

    def begin(self, ids_RK: Tensor, live_RK: Tensor, seeds: Sequence[str]) -> list[BlockState]:
        """Return the states of blocks that have had no step yet."""
        counts: list[int] = live_RK.sum(-1).tolist()
        width = ids_RK.shape[1]
        return [BlockState(seed, left, 0, [0] * width, self.text) for seed, left in zip(seeds, counts, strict=True)]

    def step(
        self,
        ids_RK: Tensor,
        live_RK: Tensor,
        logits_RKV: Tensor,
        states: Sequence[BlockState],
        sampling: Sequence[Sampling],
    ) -> Tensor:
        """Return the blocks after one step, [R, K]; ``states`` are brought up to date, full blocks left alone."""
        result_RK = ids_RK.clone()
        masks: list[int] = live_RK.sum(-1).tolist()
        groups: dict[tuple[Sampling, int], list[int]] = {}
        for row, left in enumerate(masks):
            if left:
                groups.setdefault((sampling[row], states[row].step), []).append(row)
        for (wanted, index), rows in groups.items():
            at = torch.tensor(rows, device=ids_RK.device)
            members = [states[row] for row in rows]
            tokens_RK, commit_RK = self._choose(
                logits_RKV[at], live_RK[at], members, [masks[row] for row in rows], wanted, index
            )
            result_RK[at] = torch.where(commit_RK, tokens_RK, ids_RK[at])
            for state, committed in zip(members, commit_RK.tolist(), strict=True):
                state.step = index + 1
                state.step_map = [index + 1 if new else old for new, old in zip(committed, state.step_map, strict=True)]
        return result_RK

    def _choose(
        self,
        logits_RKV: Tensor,
        live_RK: Tensor,
        states: list[BlockState],
        masks: list[int],
        wanted: Sampling,
        index: int,
    ) -> tuple[Tensor, Tensor]:
        """Return proposed tokens and the positions to commit, of requests at the same step."""
        length = live_RK.shape[1]
        sampler = self._sampler(wanted, logits_RKV.shape[-1])
        uniform_RK = _draws(states, "value", length) if sampler.draws else None
        tokens_N, score_N = sampler.propose(
            logits_RKV.flatten(0, 1).float(), None, None if uniform_RK is None else uniform_RK.flatten()
        )
        tokens_RK, score_RK = tokens_N.view_as(live_RK), score_N.view_as(live_RK)
        if bool(score_RK[live_RK].isnan().any()):
            raise DataError(
                "the network's logits are no numbers, so every token would be the first of the vocabulary",
                seen=f"NaN at {int(score_RK[live_RK].isnan().sum())} of {int(live_RK.sum())} positions",
                remedy="check the weights that were sent, and the precision",
            )
        block = Block(0, 0, length, steps=self.spec.block_steps)
        step = Step(
            score_RM=score_RK.masked_fill(~live_RK, -torch.inf),
            tokens_RM=tokens_RK,
            live_RM=live_RK,
            masks=masks,
            due=self.budget.due(block, index, masks, [state.masks for state in states]),
            index=index,
            steps=block.steps,
            fraction=self.budget.reveal_fraction(block, index),
            uniform_RM=_draws(states, "position", length).to(live_RK.device) if self.policy.noise else None,
        )
        return tokens_RK, self.policy.select(step)

    def _sampler(self, wanted: Sampling, vocab_size: int) -> ValueSampler:
        spec = dataclasses.replace(self.spec, temperature=wanted.temperature, top_p=wanted.top_p, top_k=wanted.top_k)
        given: Any = SimpleNamespace(
            spec=spec,
            network=SimpleNamespace(config=SimpleNamespace(**dataclasses.asdict(self.ids), vocab_size=vocab_size)),
            logits=lambda logits_NV, _: logits_NV,
        )
        return ValueSampler(given, self.policy.score)


def _draws(states: Sequence[BlockState], kind: str, length: int) -> Tensor:
    """Return U(0, 1) draws per request and position, in float64, that follow from seed, step and kind alone."""
    rows = [
        torch.rand(length, generator=generator_of(f"{state.seed}|{state.step}|{kind}"), dtype=torch.float64)
        for state in states
    ]
    return torch.stack(rows)
