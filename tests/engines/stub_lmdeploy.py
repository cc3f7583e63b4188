"""LMDeploy's offline engine as its package has it, without a network: answers from a script and notes what it is asked.

Names and call forms are those of the wheel, against which ``test_lmdeploy_pipeline`` holds them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from types import ModuleType, SimpleNamespace

from dare_eval.engines.lmdeploy import VERSION


class Loop:
    """``Pipeline.internal_thread``: an event loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Engine:
    """``AsyncEngine``; ``answer(prompt, config)`` returns (tokens, finish reason) or raises."""

    def __init__(self, answer):
        self.answer, self.engine, self.asked, self.params = answer, self, [], []
        self.sleeping: set[str] = set()

    async def preprocess(self, messages, session_id, gen_config=None, do_preprocess=True, input_ids=None):
        assert messages is None and not do_preprocess and not self.sleeping
        return SimpleNamespace(ids=input_ids, config=gen_config, session=session_id)

    async def generate(self, request, stream_response=True):
        assert not stream_response
        tokens, finish = self.answer(request.ids, request.config)
        yield SimpleNamespace(token_ids=tokens[:-1], finish_reason=None)
        yield SimpleNamespace(token_ids=tokens[-1:], finish_reason=finish)

    def update_params(self, request):
        assert "weights" not in self.sleeping
        self.params.append(request)

    async def sleep(self, level=1):
        self.asked.append(f"sleep {level}")
        self.sleeping = {"weights", "kv_cache"}

    def wakeup(self, tags=None):
        self.asked.append(f"wake {' '.join(tags)}")
        self.sleeping -= set(tags)


def install(monkeypatch, answer) -> list:
    """Put the stub where ``import lmdeploy`` finds it; returns the list of pipelines that are made."""
    made = []

    def pipeline(path, backend_config):
        numbers = iter(range(1000))
        pipe = SimpleNamespace(
            path=path,
            config=backend_config,
            async_engine=Engine(answer),
            internal_thread=Loop(),
            session_mgr=SimpleNamespace(get=lambda: next(numbers)),
        )
        pipe.close = pipe.internal_thread.close
        made.append(pipe)
        return pipe

    modules = {name: ModuleType(name) for name in ("lmdeploy", "lmdeploy.utils", "lmdeploy.serve.openai.protocol")}
    modules["lmdeploy"].PytorchEngineConfig = lambda **kwargs: SimpleNamespace(**kwargs)
    modules["lmdeploy"].GenerationConfig = lambda **kwargs: SimpleNamespace(**kwargs)
    modules["lmdeploy"].pipeline = pipeline
    modules["lmdeploy"].__version__ = VERSION
    modules["lmdeploy.utils"].serialize_state_dict = dict
    modules["lmdeploy.serve.openai.protocol"].UpdateParamsRequest = lambda **kwargs: SimpleNamespace(**kwargs)
    for name in ("lmdeploy.serve", "lmdeploy.serve.openai"):
        modules[name] = ModuleType(name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made
