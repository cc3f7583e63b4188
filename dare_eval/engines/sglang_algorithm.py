"""``DareLowConfidence``: our rules behind SGLang's interface of diffusion algorithms (0.5.23, first-done-first-out).

Stock algorithms pick by argmax and keep no step map. This one honours temperature, top-p and top-k of the request and
the policy of a DecodeSpec, and keeps each finished block's state on the round that emits it, where the scheduler hook
of ``sglang_plugin`` reads it. The settings come from the YAML of ``--dllm-algorithm-config``: ``block_size`` and
``spec`` (a DecodeSpec), ``eos_id``, ``eot_id``. Random numbers are named by the request id (what follows ``#`` left
out: it tells attempts apart) and the block, hence equal on all ranks of a tensor-parallel group and at a repetition.

Legend: R requests, K block length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dare_eval.engines.block_rules import BlockRules, BlockState, Sampling, SpecialIds
from dare_eval.engines.sglang_names import ALGORITHM, ALL_TOKENS, ATTEMPT
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec


def algorithm_class(base: type) -> type:
    """Return the algorithm as a subclass of SGLang's ``DllmAlgorithm``, which only its own process can import."""

    class DareLowConfidence(base):
        """Policies and samplers of DARE."""

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.rules = rules_of(config.algorithm_config, config.mask_id)
            self._current: list[BlockState] = []

        @classmethod
        def configure_server_args(cls, server_args: Any) -> None:
            """Refuse the mode in which states never leave the algorithm."""
            if not server_args.dllm_fdfo:
                raise ValueError(f"{ALGORITHM} needs first-done-first-out scheduling: drop --no-dllm-fdfo")

        def init_step_state(self, forward_batch: Any) -> list[BlockState]:
            """Return fresh states; the first position of its block names a request's random numbers."""
            ids_RK, live_RK = self._blocks(forward_batch)
            starts = forward_batch.positions.view(ids_RK.shape)[:, 0].tolist()
            names = [str(rid).partition(ATTEMPT)[0] for rid in forward_batch.rids]
            seeds = [f"{name}|{start}" for name, start in zip(names, starts, strict=True)]
            return self.rules.begin(ids_RK, live_RK, seeds)

        def step(self, forward_batch: Any, full_logits: Tensor, states: list[BlockState]) -> list[bool]:
            """Advance every block by one step in place; a block is done once a pass has seen it full."""
            ids_RK, live_RK = self._blocks(forward_batch)
            logits_RKV = full_logits.view(*ids_RK.shape, full_logits.shape[-1])
            sampling = samplings(forward_batch.sampling_info, len(states))
            after_RK = self.rules.step(ids_RK, live_RK, logits_RKV, states, sampling)
            forward_batch.input_ids.copy_(after_RK.flatten())
            self._current = states
            done: list[bool] = (~live_RK.any(-1)).tolist()
            return done

        def run(self, model_runner: Any, forward_batch: Any, algo_states: list[Any] | None = None) -> Any:
            """Run one round and hand out the states of finished blocks too, which the base drops."""
            output, tokens, accepted, states, graph = super().run(model_runner, forward_batch, algo_states)
            if states is not None:
                states = [
                    current if state is None else state for state, current in zip(states, self._current, strict=True)
                ]
            return output, tokens, accepted, states, graph

        def _blocks(self, forward_batch: Any) -> tuple[Tensor, Tensor]:
            ids_RK = forward_batch.input_ids.view(forward_batch.batch_size, self.block_size)
            return ids_RK, ~self._prompt_mask(forward_batch) & (ids_RK == self.mask_id)

    return DareLowConfidence


def rules_of(settings: Mapping[str, Any], mask_id: int) -> BlockRules:
    """Return the rules that the algorithm's YAML describes; raises ``UsageError`` for one that lacks a part."""
    missing = {"spec", "eos_id"} - set(settings)
    if missing:
        raise UsageError(
            f"the configuration of {ALGORITHM} lacks a part",
            seen=sorted(settings),
            allowed="block_size, spec (a DecodeSpec), eos_id, eot_id",
            remedy="let dare_eval.engines.sglang_settings write it",
        )
    ids = SpecialIds(mask_id, int(settings["eos_id"]), settings.get("eot_id"))
    return BlockRules(DecodeSpec.from_dict(settings["spec"]), ids)


def samplings(info: Any, count: int) -> list[Sampling]:
    """Return each request's settings; SGLang writes temperature 0 as top_k 1 with temperature 1."""
    columns = [torch.as_tensor(getattr(info, name)).flatten().tolist() for name in ("temperatures", "top_ps", "top_ks")]
    found = []
    for temperature, top_p, top_k in zip(*columns, strict=True):
        greedy = temperature == 0 or top_k <= 1
        found.append(
            Sampling()
            if greedy
            else Sampling(
                round(float(temperature), 6),
                None if top_p >= 1 else round(float(top_p), 6),
                None if top_k >= ALL_TOKENS else int(top_k),
            )
        )
    if len(found) != count:
        raise UsageError("sampling settings and requests differ in number", seen=len(found), allowed=str(count))
    return found
