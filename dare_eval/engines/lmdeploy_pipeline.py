"""LMDeploy's offline engine in this process or beside it: decodes token ids, takes weights, sleeps and wakes.

    pipeline = OfflinePipeline(folder, spec, LMDeployOptions(), ends)
    rows = pipeline.generate(prompts, spec, seeds)

Token ids go to the engine below ``lmdeploy.pipeline``, which would take text alone. Weights are handed over in shared
GPU memory, so the receiver must be another process on the same GPU (``enable_mp_engine``, ``tp`` 1). Not run on a GPU:
held against the package's source.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dare_eval.engines.buckets import BUCKET_BYTES, buckets
from dare_eval.engines.counts import check_version
from dare_eval.engines.ends import EndIds
from dare_eval.engines.lmdeploy import EngineText, LMDeployOptions, engine_arguments, generation_arguments, row_of
from dare_eval.errors import SetupError, UsageError
from dare_eval.spec import DecodeSpec

if TYPE_CHECKING:
    from torch import Tensor

DISCARD = 2
"""Level of sleep that gives weights and cache back; 1 would keep a copy of the weights in main memory."""


def engine_config(kind: Any, wanted: Mapping[str, Any]) -> Any:
    """Return the engine's config; raises ``SetupError`` for an option that it does not have or does not keep."""
    try:
        made = kind(**wanted)
    except (TypeError, ValueError, AssertionError) as error:
        raise SetupError(
            "the engine does not take an option", seen=str(error), allowed=", ".join(wanted), remedy="see its release"
        ) from error
    dropped = [name for name, value in wanted.items() if getattr(made, name, None) != value]
    if dropped:
        raise SetupError(
            "the engine drops an option",
            seen=", ".join(f"{name} = {getattr(made, name, None)!r}" for name in dropped),
            allowed=", ".join(f"{name} = {wanted[name]!r}" for name in dropped),
            remedy="see its release (docs/engines.md)",
        )
    return made


class OfflinePipeline:
    """One engine with the rules of one spec."""

    def __init__(self, model_path: str, spec: DecodeSpec, options: LMDeployOptions, ends: EndIds) -> None:
        try:
            import lmdeploy
        except ImportError as error:
            raise SetupError(
                "lmdeploy is not installed",
                seen=str(error),
                remedy="pip install 'dare[lmdeploy]', or give a server's url",
            ) from error
        self.ends, self.options, self.asleep = ends, options, False
        check_version("LMDeploy", str(lmdeploy.__version__), options.version)
        self.rules = engine_arguments(spec, options)
        config = engine_config(lmdeploy.PytorchEngineConfig, self.rules)
        self.pipe = lmdeploy.pipeline(model_path, backend_config=config)

    def generate(
        self, prompts: Sequence[list[int]], spec: DecodeSpec, seeds: Sequence[int], texts: Sequence[str] | None = None
    ) -> list[EngineText]:
        """Decode ``prompts`` and return one row per prompt, in order; ``texts`` are for engines without token ids.

        Raises ``UsageError`` for a spec with other rules than the engine was started with.
        """
        from lmdeploy import GenerationConfig

        wanted = engine_arguments(spec, self.options)
        if wanted != self.rules:
            other = [name for name in sorted({*wanted, *self.rules}) if wanted.get(name) != self.rules.get(name)]
            raise UsageError(
                "LMDeploy's rules belong to the engine, and it was started with others",
                seen=", ".join(f"{name} = {wanted.get(name)!r}" for name in other),
                allowed=", ".join(f"{name} = {self.rules.get(name)!r}" for name in other),
            )
        configs = [GenerationConfig(**generation_arguments(spec, seed, self.ends)) for seed in seeds]
        started = time.perf_counter()
        replies = self._wait_for(self._all(prompts, configs))
        wall_s = (time.perf_counter() - started) / max(len(prompts), 1)
        return [row_of(tokens, finish, spec, self.ends, wall_s) for tokens, finish in replies]

    def load_tensors(self, named: Iterable[tuple[str, Tensor]], limit: int = BUCKET_BYTES) -> None:
        """Take weights from GPU memory, bucket by bucket, under their original names."""
        from lmdeploy.serve.openai.protocol import UpdateParamsRequest
        from lmdeploy.utils import serialize_state_dict

        for last, bucket in buckets(named, limit):
            request = UpdateParamsRequest(serialized_named_tensors=serialize_state_dict(dict(bucket)), finished=last)
            self.pipe.async_engine.engine.update_params(request)

    def sleep(self) -> None:
        """Give weights and cache back until :meth:`wake`."""
        self._wait_for(self.pipe.async_engine.sleep(DISCARD))
        self.asleep = True

    def wake(self, what: str) -> None:
        """Take memory again: for ``weights``, which are to be sent then, and for the ``kv_cache`` afterwards."""
        if self.asleep:
            self.pipe.async_engine.wakeup([what])
            self.asleep = what == "weights"

    def close(self) -> None:
        """End the engine."""
        self.pipe.close()

    def _wait_for(self, work: Any) -> Any:
        """Run a coroutine where the engine runs: its requests belong to that loop."""
        return asyncio.run_coroutine_threadsafe(work, self.pipe.internal_thread.loop).result()

    async def _all(self, prompts: Sequence[list[int]], configs: Sequence[Any]) -> list[tuple[list[int], str]]:
        work = [self._one(prompt, config) for prompt, config in zip(prompts, configs, strict=True)]
        found: list[tuple[list[int], str]] = []
        for reply in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(reply, BaseException):
                raise SetupError(
                    "the engine gave up on a prompt", seen=repr(reply), remedy="see the engine's log"
                ) from reply
            found.append(reply)
        return found

    async def _one(self, prompt: list[int], config: Any) -> tuple[list[int], str]:
        """Return the tokens of one row and why it ended; a reply may come in several parts."""
        engine = self.pipe.async_engine
        request = await engine.preprocess(
            messages=None,
            session_id=self.pipe.session_mgr.get(),
            gen_config=config,
            do_preprocess=False,
            input_ids=list(prompt),
        )
        tokens: list[int] = []
        finish = ""
        async for part in engine.generate(request, stream_response=False):
            tokens += list(part.token_ids or [])
            finish = str(part.finish_reason or finish)
        return tokens, finish
