"""A small stand-in for SGLang's runtime on the CPU: one network, the algorithm under test, block-wise scheduling.

It follows what the engine's scheduler does in first-done-first-out mode (whole prompt blocks first, then one step
per round and request, finished blocks committed and their hooks called) and leaves out everything else: memory,
batching across requests, streaming. The base class of the algorithm comes in from outside: the wheel's own, or the
copy of its loop below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch

from dare_eval.engines import sglang_plugin
from dare_eval.engines.sglang_algorithm import algorithm_class
from dare_eval.engines.sglang_names import ALL_TOKENS, WHOLE
from dare_eval.networks import AttentionMask


class StandInBase:
    """The documented interface of ``DllmAlgorithm`` with its first-done-first-out round, written anew."""

    def __init__(self, config: Any) -> None:
        self.block_size, self.mask_id = config.block_size, config.mask_id
        self.fdfo = config.first_done_first_out_mode

    def _prompt_mask(self, batch: Any) -> torch.Tensor:
        if batch.dllm_prompt_mask is not None:
            return batch.dllm_prompt_mask
        return batch.input_ids.view(batch.batch_size, self.block_size) != self.mask_id

    def run(self, runner: Any, batch: Any, algo_states: list[Any] | None = None) -> Any:
        carried = algo_states or [None] * batch.batch_size
        fresh = self.init_step_state(batch)
        states = [new if old is None else old for old, new in zip(carried, fresh, strict=True)]
        out = runner.forward(batch, pp_proxy_tensors=None)
        done = self.step(batch, out.logits_output.full_logits, states)
        ids = batch.input_ids.view(batch.batch_size, self.block_size).tolist()
        accepted = [self.block_size if one else 0 for one in done]
        left = [None if one else state for one, state in zip(done, states, strict=True)]
        return out.logits_output, ids, accepted, left, out.can_run_graph


@dataclass
class StubRequest:
    """The fields of the engine's ``Req`` that hooks and commits touch."""

    rid: str
    origin_input_ids: list[int]
    sampling: Mapping[str, Any]
    output_ids: list[int] = field(default_factory=list)
    customized_info: dict[str, Any] | None = None
    extend_end: int = 0
    finished_len: int | None = None
    over: bool = False
    state: Any = None

    def finished(self) -> bool:
        return self.over


class StubEngine:
    """``Calls`` for ``SGLangDecoder``: generate in lockstep rounds over all unfinished requests."""

    def __init__(self, network: Any, settings: Mapping[str, Any], base: type = StandInBase) -> None:
        self.network, self.block = network, settings["block_size"]
        config = SimpleNamespace(
            block_size=self.block,
            mask_id=network.config.mask_id,
            algorithm_config=settings,
            first_done_first_out_mode=True,
        )
        self.algorithm = algorithm_class(base)(config)
        self.caches: dict[str, Any] = {}

    def version(self) -> str:
        return "stub"

    def do(self, name: str, /, **arguments: Any) -> Any:
        raise AssertionError(f"the stub has no {name}")

    @torch.no_grad()
    def generate(self, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        rows = zip(payload["rid"], payload["input_ids"], payload["sampling_params"], strict=True)
        requests = [StubRequest(rid, list(ids), sampling) for rid, ids, sampling in rows]
        for request in requests:
            self._prefill(request)
        while busy := [request for request in requests if not request.finished()]:
            self._round(busy)
        return [self._reply(request) for request in requests]

    def _prefill(self, request: StubRequest) -> None:
        prompt, whole = request.origin_input_ids, len(request.origin_input_ids) // self.block * self.block
        length = len(prompt) + request.sampling["max_new_tokens"] + self.block
        self.caches[request.rid] = self.network.new_cache(1, length)
        if whole:
            mask = AttentionMask.block_causal(whole, self.block)
            cache = self.caches[request.rid].first(whole)
            self.network.body(torch.tensor([prompt[:whole]]), mask=mask, cache=cache, columns=slice(0, whole))
        request.extend_end = whole + self.block
        tail = prompt[whole:]
        request.canvas = [*tail, *[self.network.config.mask_id] * (self.block - len(tail))]

    def forward(self, batch: Any, pp_proxy_tensors: Any) -> Any:
        logits = []
        for request, ids in zip(batch.requests, batch.input_ids.view(-1, self.block), strict=True):
            columns = slice(request.extend_end - self.block, request.extend_end)
            cache = self.caches[request.rid].first(request.extend_end)
            hidden = self.network.body(ids[None], mask=AttentionMask(), cache=cache, columns=columns)
            logits.append(self.network.head(hidden)[0])
        return SimpleNamespace(logits_output=SimpleNamespace(full_logits=torch.cat(logits)), can_run_graph=False)

    def _round(self, busy: list[StubRequest]) -> None:
        batch = self._batch(busy)
        output = self.algorithm.run(self, batch, [request.state for request in busy])
        _, ids, accepted, states, _ = output
        result = SimpleNamespace(next_token_ids=ids, accept_length_per_req_cpu=accepted, dllm_algo_state=states)
        sglang_plugin.keep_step_maps(None, SimpleNamespace(reqs=busy), result)
        for request, tokens, count, state in zip(busy, ids, accepted, states, strict=True):
            request.canvas, request.state = tokens, None if count else state
            if count:
                self._commit(request, tokens)

    def _batch(self, busy: list[StubRequest]) -> Any:
        ids = torch.tensor([request.canvas for request in busy])
        starts = [request.extend_end - self.block for request in busy]
        committed = [len(request.origin_input_ids) + len(request.output_ids) for request in busy]
        positions = torch.tensor([[start + place for place in range(self.block)] for start in starts])
        mask_id = self.network.config.mask_id
        literal = any(mask_id in request.origin_input_ids for request in busy)
        sampling = [request.sampling for request in busy]
        greedy = [one["temperature"] == 0 for one in sampling]
        return SimpleNamespace(
            requests=busy,
            batch_size=len(busy),
            input_ids=ids.flatten(),
            positions=positions.flatten(),
            rids=[request.rid for request in busy],
            dllm_prompt_mask=positions < torch.tensor(committed)[:, None] if literal else None,
            sampling_info=SimpleNamespace(
                temperatures=torch.tensor(
                    [[1.0 if g else s["temperature"]] for g, s in zip(greedy, sampling, strict=True)]
                ),
                top_ps=torch.tensor([s["top_p"] for s in sampling]),
                top_ks=torch.tensor([1 if g else s["top_k"] for g, s in zip(greedy, sampling, strict=True)]),
            ),
        )

    def _commit(self, request: StubRequest, tokens: list[int]) -> None:
        fresh = max(0, len(request.origin_input_ids) - (request.extend_end - self.block))
        new, before = tokens[fresh:], len(request.output_ids)
        request.output_ids += new
        stops = () if request.sampling["ignore_eos"] else request.sampling["stop_token_ids"]
        end = next((place for place, token in enumerate(new) if token in stops), None)
        budget = request.sampling["max_new_tokens"]
        if end is not None:
            request.over, request.finished_len = True, min(before + end + 1, budget)
        elif len(request.output_ids) >= budget:
            request.over, request.finished_len = True, budget
        sglang_plugin.note_stop(None, request)
        request.extend_end += self.block
        request.canvas = [self.network.config.mask_id] * self.block

    @staticmethod
    def _reply(request: StubRequest) -> Mapping[str, Any]:
        visible = request.output_ids[: request.finished_len]
        info = request.customized_info or {}
        meta = {key: value if key in WHOLE else value[: len(visible)] for key, value in info.items()}
        return {"output_ids": visible, "meta_info": {"id": request.rid, **meta}}


assert ALL_TOKENS > 2**20
