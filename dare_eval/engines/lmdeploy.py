"""SDAR through LMDeploy (0.18.0, PyTorch engine): settings, refusals, and the client of its server.

Decoding rules are settings of the engine, not of a request, so one engine serves one spec. Every option that we pass
is a field of the engine's config class; one that is not is an error, never dropped. The engine reports neither
forwards nor step maps: NFE stays unknown, and algorithms that need trajectories cannot use it. Its own
``get_ppl`` is causal and is not used. Not run on a GPU: held against the package's source. The offline engine is in
``lmdeploy_pipeline``.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dare_eval.engines.counts import check_counts, check_share
from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import HttpClient, need_mapping
from dare_eval.engines.patience import HttpOptions
from dare_eval.engines.token_lists import check_finished, check_whole, ids_at
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec

VERSION = "0.18.0"
"""Release that everything here is held against."""
FAMILIES = ("sdar", "sdar_moe")
STRATEGIES = {
    "threshold": "low_confidence_dynamic",
    "dynamic": "low_confidence_dynamic",
    "quota": "low_confidence_static",
    "sequential": "sequential",
}
"""Our policies under the engine's names; dynamic with one token due per step is its dynamic strategy."""
DTYPES = ("bfloat16", "float16")
SEEDS = 2**31
HOTTEST = 2.0
"""Highest temperature that the engine takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LMDeployOptions:
    """How the engine is laid out."""

    tp: int = 1
    dp: int = 1
    ep: int = 1
    max_batch_size: int = 64
    session_len: int | None = None
    """Longest prompt plus response; None takes the checkpoint's."""
    cache_max_entry_count: float = 0.8
    """Share of free GPU memory for keys and values."""
    empty_init: bool = False
    """Start without weights (rollout: they are sent before the first use)."""
    enable_mp_engine: bool = False
    """Run the engine in a process of its own (rollout: weights go to it through shared GPU memory)."""
    version: str = VERSION
    """Release, as it is recorded; an engine of another one is refused (a server does not tell its own)."""

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        check_counts(self, "tp", "dp", "ep", "max_batch_size", *(["session_len"] if self.session_len else []))
        check_share(self, "cache_max_entry_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineText:
    """One decoded row; what the engine does not tell is None."""

    tokens: list[int]
    """Response before its first end token."""
    response: list[int]
    """As the engine returned it, the end token included."""
    generated_tokens: int
    wall_s: float
    stop: str
    nfe: None = None
    nfe_by_block: None = None
    step_map: None = None
    edits: None = None


def engine_spec(spec: DecodeSpec, version: str = VERSION) -> DecodeSpec:
    """Return the spec as LMDeploy runs it, ``engine`` filled in; raises ``UsageError`` for what it cannot do.

    A row leaves after the block that ends it, whatever ``early_stop`` says: what stands before the end token is the
    same. Going on regardless is no choice here: the engine then bans end tokens, which changes the answers.
    """
    if spec.family not in FAMILIES:
        raise UsageError(
            f"LMDeploy does not serve family '{spec.family}' as a diffusion model",
            seen=spec.family,
            allowed=", ".join(FAMILIES),
            remedy="leave the engine out, or use --engine sglang where it serves the family",
        )
    wanted = {"cache": "block", "schedule": "equal", "cfg_scale": 0.0, "edit_threshold": None, "eos_gamma": None}
    wanted |= {"parity": (), "eos_rule": "none", "alg_temp": None}
    for name, only in wanted.items():
        if getattr(spec, name) != only:
            raise UsageError(
                f"LMDeploy cannot honour {name}",
                seen=f"{name} = {getattr(spec, name)!r}",
                allowed=repr(only),
                remedy="change the setting, or leave the engine out: the native decoder has it",
            )
    if spec.dtype not in DTYPES:
        raise UsageError(
            "LMDeploy computes in half precision",
            seen=f"dtype = {spec.dtype}",
            allowed=", ".join(DTYPES),
            remedy="set dtype among the decoding settings (rollouts: rollout.decoding)",
        )
    if spec.temperature > HOTTEST:
        raise UsageError(
            "LMDeploy takes no such temperature", seen=spec.temperature, allowed=f"0 to {HOTTEST}", remedy="lower it"
        )
    _check_policy(spec)
    return dataclasses.replace(spec, early_stop="block", engine=f"lmdeploy {version}")


def _check_policy(spec: DecodeSpec) -> None:
    if spec.policy not in STRATEGIES:
        raise UsageError(
            "LMDeploy has no such policy",
            seen=spec.policy,
            allowed=", ".join(sorted(STRATEGIES)),
            remedy="leave the engine out: the native decoder has it",
        )
    steps = spec.block_steps
    if spec.policy == "dynamic" and (steps not in (None, spec.block_length) or (spec.min_transfer or 1) != 1):
        raise UsageError(
            "LMDeploy's dynamic strategy commits at least one token per step",
            seen=f"steps = {spec.steps}, min_transfer = {spec.min_transfer}",
            allowed=f"steps = {spec.gen_length}",
            remedy="set steps to gen_length",
        )
    if spec.policy in ("quota", "sequential") and (steps is None or spec.block_length % steps):
        raise UsageError(
            "LMDeploy commits equally many tokens at each step",
            seen=f"{steps} steps for blocks of {spec.block_length}",
            allowed="steps per block that divide the block length",
        )


def engine_arguments(spec: DecodeSpec, options: LMDeployOptions) -> dict[str, Any]:
    """Return the keywords of ``PytorchEngineConfig``."""
    given = dataclasses.asdict(options)
    found = {key: value for key, value in given.items() if value is not None and key != "version"}
    found |= {
        "dtype": spec.dtype,
        "dllm_block_length": spec.block_length,
        "dllm_unmasking_strategy": STRATEGIES[spec.policy],
        "dllm_denoising_steps": spec.block_steps or spec.block_length,
    }
    if spec.threshold is not None:
        found["dllm_confidence_threshold"] = spec.threshold
    return found


def generation_arguments(spec: DecodeSpec, seed: int, ends: EndIds) -> dict[str, Any]:
    """Return the keywords of ``GenerationConfig`` for one row."""
    found: dict[str, Any] = {
        "max_new_tokens": spec.gen_length,
        "do_sample": spec.temperature > 0,
        "random_seed": seed % SEEDS,
        "ignore_eos": False,
        "stop_token_ids": sorted(ends.stop_ids),
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
    }
    if spec.temperature > 0:
        found |= {"temperature": spec.temperature, "top_p": spec.top_p or 1.0, "top_k": spec.top_k or 0}
    return found


class Server:
    """LMDeploy's API server, which must have been started with the engine arguments of the same spec."""

    def __init__(self, url: str, ends: EndIds, options: HttpOptions | None = None) -> None:
        self.client, self.ends = HttpClient(url, options), ends

    def generate(
        self, prompts: Sequence[list[int]], spec: DecodeSpec, seeds: Sequence[int], texts: Sequence[str]
    ) -> list[EngineText]:
        """Decode token ids; one request per row."""
        started = time.perf_counter()
        replies = self.client.post_all("/generate", [server_request(prompt, spec, self.ends) for prompt in prompts])
        wall_s = (time.perf_counter() - started) / max(len(prompts), 1)
        return [self._row(reply, spec, wall_s) for reply in replies]

    def _row(self, reply: Any, spec: DecodeSpec, wall_s: float) -> EngineText:
        meta = need_mapping(reply, "meta_info")
        check_finished(meta)
        reason = meta.get("finish_reason")
        finish = str(reason.get("type", "")) if isinstance(reason, Mapping) else ""
        return row_of(ids_at(reply, "output_ids", ends=self.ends), finish, spec, self.ends, wall_s)


def server_request(prompt: list[int], spec: DecodeSpec, ends: EndIds) -> dict[str, Any]:
    """Return the body of ``POST /generate``; the server takes no seed, so sampling cannot be reproduced there."""
    if spec.temperature > 0:
        raise UsageError(
            "LMDeploy's server takes no seed, so sampled answers could not be reproduced",
            seen=f"temperature = {spec.temperature}",
            allowed="0",
            remedy="use the offline engine (no url), or the native decoder",
        )
    return {
        "input_ids": list(prompt),
        "max_tokens": spec.gen_length,
        "stop_token_ids": sorted(ends.stop_ids),
        "ignore_eos": False,
        "temperature": 1.0,
        "top_k": 1,
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
    }


def command_line(model_path: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the words after ``lmdeploy`` that start a server with the engine arguments."""
    words = ["serve", "api_server", model_path, "--backend", "pytorch"]
    for name, value in arguments.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [] if value is False else [flag, str(value)]
    return words


def row_of(tokens: list[int], finish: str, spec: DecodeSpec, ends: EndIds, wall_s: float) -> EngineText:
    """Return what a reply says; raises ``SetupError`` when the engine gave up on the row, or cut it short."""
    from dare_eval.decoding.results import trim

    check_finished({"finish_reason": finish})
    check_whole(tokens, ends, spec.gen_length, stopped=finish == "stop")
    response = tokens[: spec.gen_length]
    kept, stop = trim(response, ends.eos_id, set(ends.stop_ids), spec.gen_length)
    # A server that leaves the end token out of its answer still says why it stopped.
    stop = "eos" if stop == "length" and finish == "stop" else stop
    return EngineText(tokens=kept, response=response, generated_tokens=len(kept), wall_s=wall_s, stop=stop)
