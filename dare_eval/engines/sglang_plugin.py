"""Entry point ``sglang.srt.plugins``: adds our algorithm and step maps to a running SGLang (0.5.23), without a fork.

SGLang calls :func:`register` in each of its processes before it starts. Step maps come back in a reply's
``meta_info``: ``step_maps`` beside the visible tokens, and the whole blocks, the last one's unseen tail included, under
the keys of replay contract 1, so that a response that stops inside a block can be replayed exactly. Not run on a GPU:
the hook is tested with the wheel's own registry and batches made by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dare_eval.engines.sglang_algorithm import algorithm_class
from dare_eval.engines.sglang_names import (
    ALGORITHM,
    CONTRACT,
    CONTRACT_VERSION,
    REPLAY_STEPS,
    REPLAY_TOKENS,
    RULES,
    STEP_MAPS,
    STOP_LENGTH,
    WHOLE,
)

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler.process_batch_result_dllm"
REQUEST = "sglang.srt.managers.schedule_batch.Req.update_finish_state"
STREAMER = (
    "sglang.srt.managers.scheduler_components.output_streamer."
    "SchedulerOutputStreamer.is_request_level_customized_info_key"
)


def register() -> None:
    """Add the algorithm and the hooks."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls
    from sglang.srt.dllm.algorithm.base import DllmAlgorithm
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    algo_name_to_cls[ALGORITHM] = algorithm_class(DllmAlgorithm)
    HookRegistry.register(SCHEDULER, keep_step_maps, HookType.BEFORE)
    HookRegistry.register(REQUEST, note_stop, HookType.AFTER)
    HookRegistry.register(STREAMER, whole_request_key, HookType.AFTER)


def keep_step_maps(scheduler: Any, batch: Any, result: Any, *_: Any, **__: Any) -> None:
    """Write what finished blocks say into ``req.customized_info``, before the scheduler commits them."""
    states, accepted = result.dllm_algo_state, result.accept_length_per_req_cpu
    if states is None or accepted is None:
        return
    for req, tokens, state, count in zip(batch.reqs, result.next_token_ids, states, accepted, strict=True):
        if count and hasattr(state, "step_map"):
            _note(req, list(tokens), state.step_map, getattr(state, "rules", ""))


def _note(req: Any, tokens: list[int], step_map: Iterable[int], rules: str) -> None:
    prompt, end = len(req.origin_input_ids), req.extend_end
    if end <= prompt:
        return  # a block of the prompt
    fresh = max(0, prompt - (end - len(tokens)))
    steps = list(step_map)[fresh:]
    info = req.customized_info
    if info is None:
        info = req.customized_info = {}
    info.setdefault(STEP_MAPS, []).extend(steps)
    info.setdefault(REPLAY_STEPS, []).extend(steps)
    info.setdefault(REPLAY_TOKENS, []).extend(tokens[fresh:])
    info[STOP_LENGTH] = [len(info[REPLAY_TOKENS])]
    info[CONTRACT] = [CONTRACT_VERSION]
    info[RULES] = [rules]


def note_stop(result: Any, req: Any, *_: Any, **__: Any) -> Any:
    """Write how many tokens of a finished request are visible."""
    if req.customized_info and REPLAY_TOKENS in req.customized_info and req.finished():
        visible = len(req.output_ids) if req.finished_len is None else req.finished_len
        req.customized_info[STOP_LENGTH] = [visible]
    return result


def whole_request_key(result: bool, _: Any, key: str) -> bool:
    """Return whether ``key`` is handed out once per request rather than per token."""
    return result or key in WHOLE
