"""Rollouts by LMDeploy on the trainer's own GPU (SDAR): one engine per process, weights through shared GPU memory.

    rollout:
      backend: lmdeploy
      decoding: {dtype: bfloat16}
      options: {max_batch_size: 64, cache_max_entry_count: 0.4}

Each process starts its engine, without weights, in a process beside it on the same GPU; at each sync the weights go
there in buckets, and between rollouts the engine gives its memory back. Sampling takes our seeds. The engine reports
neither forwards nor the step at which a token was fixed, so algorithms that replay what happened are refused and
forwards stay 0. The engine cannot be asked for a weight, so nothing is compared after a sync. Leaves out tensor
parallelism: a handle of shared memory opens on its own GPU alone. Not run on a GPU.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dare_eval.engines.ends import ends_of
from dare_eval.engines.lmdeploy import EngineText, LMDeployOptions, engine_spec
from dare_eval.engines.lmdeploy_pipeline import OfflinePipeline
from dare_eval.engines.rules import rules_text
from dare_eval.errors import UsageError, unknown
from dare_eval.networks import resolve_model_path

if TYPE_CHECKING:
    from dare_eval.decoding import DecodeResult
    from dare_eval.spec import DecodeSpec
    from dare_train.rl.backends import BackendFacts, Named, Request

OPTIONS = ("max_batch_size", "session_len", "cache_max_entry_count", "version")
CACHE_SHARE = 0.4
"""Of free GPU memory, for keys and values: the trainer's own tensors are there too."""


class LMDeployRollout:
    """An engine that shares the GPU of this process."""

    traces = False
    recorders = ("final",)
    rules = staticmethod(rules_text)
    """What an engine fixes when it starts: the same for rollouts and held-out answers."""

    @staticmethod
    def check(spec: DecodeSpec) -> None:
        """Raise ``UsageError`` for a spec that the engine cannot honour."""
        engine_spec(spec)

    def __init__(self, facts: BackendFacts) -> None:
        for name in facts.options:
            if name not in OPTIONS:
                raise unknown("option of the lmdeploy rollout", name, OPTIONS)
        if not facts.folder or facts.spec is None:
            raise UsageError("the lmdeploy rollout needs a base checkpoint and decoding rules", seen=facts.folder)
        device = next(facts.network.parameters()).device
        if device.type != "cuda":
            raise UsageError(
                "the lmdeploy rollout shares GPU memory with the trainer",
                seen=f"the network is on {device.type}",
                allowed="cuda",
                remedy="rollout.backend = inprocess",
            )
        config, self.spec = facts.network.config, engine_spec(facts.spec)
        self.mask_id, self.version = config.mask_id, -1
        ends = ends_of(config, facts.spec)
        given = {"cache_max_entry_count": CACHE_SHARE, **facts.options}
        options = LMDeployOptions(empty_init=True, enable_mp_engine=True, **given)
        with only_device(device.index or 0):
            self.engine = OfflinePipeline(str(resolve_model_path(facts.folder)), self.spec, options, ends)

    def generate(self, request: Request) -> list[DecodeResult]:
        """Decode every row with its own seed."""
        if request.record or request.committed is not None:
            raise UsageError(
                "LMDeploy keeps no states and starts from none", remedy="rollout.backend = inprocess for this algorithm"
            )
        spec = engine_spec(request.spec)
        rows = self.engine.generate(request.prompts, spec, request.seeds)
        return [_result(row, spec.gen_length, self.mask_id) for row in rows]

    def sync(self, named: Named, version: int) -> None:
        """Hand over the weights in the engine's precision, then let it take memory for its cache."""
        import torch

        dtype = getattr(torch, self.spec.dtype)
        self.engine.load_tensors((name, value.detach().to(dtype).contiguous()) for name, value in named)
        self.engine.wake("kv_cache")
        self.version = version

    def sleep(self) -> None:
        """Let the engine give weights and cache back."""
        self.engine.sleep()

    def wake(self) -> None:
        """Let the engine take memory for weights; they follow by :meth:`sync`."""
        self.engine.wake("weights")


def _result(row: EngineText, gen_length: int, mask_id: int) -> DecodeResult:
    """Return a row as rollouts read it: masks after the end, no forwards, no step at which a token was fixed."""
    from dare_eval.decoding import DecodeResult

    response = [*row.response, *[mask_id] * (gen_length - len(row.response))]
    return DecodeResult(
        tokens=row.tokens,
        nfe=0,
        nfe_by_block=[],
        generated_tokens=row.generated_tokens,
        wall_s=row.wall_s,
        step_map=[-1] * gen_length,
        stop=row.stop,
        response=response,
    )


@contextlib.contextmanager
def only_device(index: int) -> Iterator[None]:
    """Let processes that start meanwhile see one GPU alone: that of this process."""
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = before.split(",")[index] if before else str(index)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
