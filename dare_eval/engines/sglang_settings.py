"""A DecodeSpec as SGLang's settings: server arguments, the algorithm's configuration, a request's parameters.

One spec drives every engine; what SGLang cannot do is refused here, before anything starts. Response budgets are
aligned to blocks, since SGLang decodes whole blocks; the client cuts the answer to ``gen_length``. Names and defaults
are those of SGLang 0.5.23 (tests hold them against its source).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.engines.counts import check_counts, check_share
from dare_eval.engines.ends import EndIds
from dare_eval.engines.sglang_names import ALGORITHM, ALL_TOKENS, VERSION
from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec

ARCHITECTURES = {"sdar": "SDARForCausalLM", "sdar_moe": "SDARMoeForCausalLM", "llada2": "LLaDA2MoeModelLM"}
"""Families that SGLang's diffusion mode serves, and the architecture in their config.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SGLangOptions:
    """How the engine is laid out."""

    tp: int = 1
    dp: int = 1
    ep: int = 1
    pp: int = 1
    max_running_requests: int = 64
    """Requests decoded together; diffusion mode takes one at a time when it is not set."""
    mem_fraction_static: float | None = None
    """Share of the GPU's memory for weights and cache; None leaves it to the engine."""
    memory_saver: bool = False
    """Let weights and cache be given back between rollouts."""
    version: str = VERSION
    """Release, as it is recorded; an engine of another one is refused."""

    def __post_init__(self) -> None:
        """Refuse layouts that the engine does not have."""
        check_counts(self, "tp", "dp", "ep", "pp", "max_running_requests")
        check_share(self, "mem_fraction_static")
        if self.pp > 1:
            raise UsageError(
                "SGLang has no pipeline parallelism in diffusion mode: a block is denoised in many passes over the "
                "whole network, and its scheduler runs them on one stage",
                seen=f"pp = {self.pp}",
                allowed="1",
                remedy="split the model with tp or ep instead",
            )
        if self.tp % self.ep:
            raise UsageError("ep does not divide tp", seen=f"tp {self.tp}, ep {self.ep}", remedy="ep = tp, or 1")


def engine_spec(spec: DecodeSpec, version: str = VERSION) -> DecodeSpec:
    """Return the spec as SGLang runs it, ``engine`` filled in; raises ``UsageError`` for what it cannot do.

    A row leaves after the block that ends it. ``early_stop`` prefix, which leaves within the block, therefore becomes
    block: what stands before the end token is the same, the forwards differ and are counted as they are.
    """
    if spec.family not in ARCHITECTURES:
        raise UsageError(
            f"SGLang's diffusion mode does not serve family '{spec.family}'",
            seen=spec.family,
            allowed=", ".join(sorted(ARCHITECTURES)),
            remedy="leave the engine out: the native decoder runs every family",
        )
    wanted = {"cache": "block", "schedule": "equal", "cfg_scale": 0.0, "edit_threshold": None, "eos_gamma": None}
    wanted |= {"parity": ()}
    for name, only in wanted.items():
        if getattr(spec, name) != only:
            raise UsageError(
                f"SGLang cannot honour {name}",
                seen=f"{name} = {getattr(spec, name)!r}",
                allowed=repr(only),
                remedy="change the setting, or leave the engine out: the native decoder has it",
            )
    stop = "block" if spec.early_stop == "prefix" else spec.early_stop
    return dataclasses.replace(spec, early_stop=stop, engine=f"sglang {version}")


def server_arguments(model_path: str, spec: DecodeSpec, config_file: Path, options: SGLangOptions) -> dict[str, Any]:
    """Return the keywords of ``sglang.Engine`` (and, with dashes, of its server)."""
    found: dict[str, Any] = {
        "model_path": model_path,
        "dllm_algorithm": ALGORITHM,
        "dllm_algorithm_config": str(config_file),
        "max_running_requests": options.max_running_requests,
        "tp_size": options.tp,
        "dp_size": options.dp,
        "ep_size": options.ep,
        "dtype": spec.dtype,
        "random_seed": spec.seed,
        "trust_remote_code": False,
    }
    if options.mem_fraction_static is not None:
        found["mem_fraction_static"] = options.mem_fraction_static
    if options.memory_saver:
        found["enable_memory_saver"] = True
    return found


def write_config(file: Path, spec: DecodeSpec, ends: EndIds) -> Path:
    """Write the algorithm's configuration (JSON, which is YAML) and return its path."""
    settings = {
        "block_size": spec.block_length,
        "threshold": 0.0 if spec.threshold is None else spec.threshold,
        "spec": spec.to_dict(),
        "eos_id": ends.eos_id,
        "eot_id": ends.eot_id,
    }
    file.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return file


def sampling_parameters(spec: DecodeSpec, prompt_length: int, ends: EndIds) -> dict[str, Any]:
    """Return ``sampling_params`` of one request."""
    sampled = spec.temperature > 0
    return {
        "max_new_tokens": aligned_budget(prompt_length, spec.gen_length, spec.block_length),
        "temperature": spec.temperature,
        "top_p": spec.top_p if sampled and spec.top_p is not None else 1.0,
        "top_k": spec.top_k if sampled and spec.top_k is not None else (ALL_TOKENS if sampled else 1),
        "stop_token_ids": sorted(ends.stop_ids),
        "ignore_eos": spec.early_stop == "none",
        "skip_special_tokens": False,
    }


def aligned_budget(prompt_length: int, gen_length: int, block_length: int) -> int:
    """Return the smallest budget >= ``gen_length`` with which prompt and response end at a block border."""
    return gen_length + -(prompt_length + gen_length) % block_length


def command_line(arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments as they follow ``python -m sglang.launch_server``."""
    words: list[str] = []
    for name, value in arguments.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not False and value is not None:
            words += [flag, str(value)]
    return words
