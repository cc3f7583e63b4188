"""From a golden sampling case to a DecodeSpec and back: what the reference was asked, what it returned.

Each (sampler, variant) has an entry in ``SPECS``; an unknown pair is an error, so that a new kind of case cannot
pass unseen.
"""

from __future__ import annotations

import math

from dare_eval.decoding import DecodeResult, RecordOptions, decode
from dare_eval.spec import DecodeSpec

LLADA_EOS = {"logits_eos_inf": "logits_eos_inf", "confidence_eos_eot_inf": "confidence_eos_eot_inf"}
DREAM_POLICIES = {"maskgit_plus": "quota", "topk_margin": "margin", "entropy": "entropy", "origin": "origin"}
SDAR_POLICIES = {
    "sequential": "sequential",
    "low_confidence_static": "quota",
    "low_confidence_dynamic": "dynamic",
}


def llada(case):
    params = case["params"]
    settings = {key: params[key] for key in ("gen_length", "steps", "block_length")}
    settings["cfg_scale"] = params.get("cfg_scale", 0.0)
    settings["policy"] = "random" if params.get("remasking") == "random" else "quota"
    settings["temperature"] = params.get("temperature", 0.0)
    settings["eos_rule"] = next((rule for key, rule in LLADA_EOS.items() if params.get(key)), "none")
    return settings


def fastdllm_llada(case):
    params = case["params"]
    cache = params["cache"].replace("nocache", "none")
    settings = {"gen_length": params["gen_length"], "block_length": params["block_length"], "cache": cache}
    if cache != "none" and case["sampler"] == "fastdllm_llada":
        settings["parity"] = ["idle_cached_pass"]
    for key in ("threshold", "factor"):
        if key in params:
            return settings | {"policy": key, key: params[key]}
    return settings | {"steps": params["steps"]}


def eoser_ass(case):
    params = case["params"]
    length = params["gen_length"]
    settings = {"gen_length": length, "steps": params["steps"]}
    if "block_num" in params:
        settings |= {"schedule": "ascending", "block_length": math.ceil(length / params["block_num"])}
    else:
        settings["block_length"] = params["block_length"]
    if "eos_min_gamma" in params:
        settings |= {"eos_rule": "eoser", "eos_gamma": [params["eos_min_gamma"], params["eos_max_gamma"]]}
    return settings


def dream(case):
    params = case["params"]
    settings = {key: params.get(key) for key in ("steps", "temperature", "eps", "top_k", "top_p", "alg_temp")}
    settings |= {"gen_length": params["max_new_tokens"], "policy": DREAM_POLICIES[params["alg"]]}
    if params["steps"] >= params["max_new_tokens"] or params["alg"] == "origin":
        # The published quota of the first step rounds to zero tokens here.
        settings["parity"] = ["zero_commit_steps"]
    return settings


def dream_fastdllm(case):
    params = case["params"]
    assert params["alg"] == "confidence_threshold"
    settings = {key: params[key] for key in ("steps", "temperature", "threshold", "top_k")}
    return settings | {"gen_length": params["max_new_tokens"], "policy": "carry"}


def dream_block(case):
    params = case["params"]
    settings = {key: params[key] for key in ("block_length", "temperature", "top_k")}
    settings |= {"gen_length": params["max_new_tokens"], "cache": "dual" if params["dual_cache"] else "prefix"}
    if params["alg"] == "confidence_threshold":
        return settings | {"policy": "threshold", "threshold": params["threshold"]}
    # Whatever else was asked for, the reference ranks by entropy.
    settings |= {"policy": "entropy", "steps": params["steps"]}
    return settings | ({"parity": ["zero_commit_steps"]} if params["steps"] >= params["max_new_tokens"] else {})


def sdar(case, *, reference: bool):
    params = case["params"]
    blocks = math.ceil(params["gen_length"] / params["block_length"])
    settings = {key: params[key] for key in ("gen_length", "block_length")}
    settings |= {"policy": SDAR_POLICIES[params["remasking_strategy"]], "cache": "block"}
    settings |= {"steps": params["denoising_steps"] * blocks, "early_stop": "none", "parity": []}
    if settings["policy"] == "dynamic":
        settings["threshold"] = params["confidence_threshold"]
    if params.get("stopping_criteria_idx"):
        settings |= {"early_stop": "block", "stop_ids": params["stopping_criteria_idx"]}
    truncates = params["top_k"] or params["top_p"] < 1
    if not case["greedy_patch"]:
        settings["temperature"] = params["temperature"]
        settings |= {"top_k": params["top_k"] or None, "top_p": params["top_p"] if params["top_p"] < 1 else None}
    if truncates and case["sampler"] == "sdar":
        settings["parity"].append("truncated_confidence")
    if reference and case.get("reference_bug"):
        settings["parity"].append("overwrite_committed")
    return settings


def llada20(case):
    params = case["params"]
    length, block = params["gen_length"], params["block_length"]
    steps = min(params["steps"], length // params.get("minimal_topk", 1))
    settings = {"gen_length": length, "block_length": block, "steps": steps * math.ceil(length / block)}
    settings |= {"policy": "dynamic", "threshold": params["threshold"], "temperature": params["temperature"]}
    settings["early_stop"] = "prefix" if params.get("eos_early_stop") else "block"
    if case["variant"] == "unpatched":
        settings["parity"] = ["sample_at_zero_temperature"]
    return settings


def llada21(case):
    params = case["params"]
    settings = {
        key: params[key] for key in ("gen_length", "block_length", "threshold", "temperature", "max_post_steps")
    }
    settings |= {"policy": "dynamic", "edit_threshold": params["editing_threshold"]}
    settings["min_transfer"] = params["num_to_transfer"]
    settings["early_stop"] = "block" if params.get("eos_early_stop") else "none"
    if case["variant"] == "asbundled":
        settings["parity"] = ["additive_block_mask"]
    return settings


SPECS = {
    ("llada", "default"): llada,
    ("fastdllm_llada", "default"): fastdllm_llada,
    ("dare_llada", "default"): fastdllm_llada,
    ("eoser_ass", "default"): eoser_ass,
    ("dream", "default"): dream,
    ("dream_fastdllm", "default"): dream_fastdllm,
    ("dream_block", "default"): dream_block,
    ("sdar", "default"): sdar,
    ("sdar_dare", "default"): sdar,
    ("llada20", "default"): llada20,
    ("llada20", "unpatched"): llada20,
    ("llada21", "asbundled"): llada21,
    ("llada21", "maskfixed"): llada21,
}


def spec_of(case, family: str, *, reference: bool = True) -> DecodeSpec:
    """Return the spec of a case; ``reference`` turns on the parity switch of a flagged reference bug."""
    key = (case["sampler"], case["variant"])
    assert key in SPECS, f"{case['name']}: sampler and variant {key} are not known to this test"
    extra = {"reference": reference} if SPECS[key] is sdar else {}
    return DecodeSpec.build(family, **SPECS[key](case, **extra))


def prompts_of(case) -> list[list[int]]:
    """Return the prompts of a case without their left padding."""
    keep = case.get("attention_mask") or [[1] * len(row) for row in case["prompt_ids"]]
    return [
        [t for t, k in zip(row, flags, strict=True) if k] for row, flags in zip(case["prompt_ids"], keep, strict=True)
    ]


def run(case, network, *, reference: bool = True) -> list[DecodeResult]:
    spec = spec_of(case, network.config.family, reference=reference)
    return decode(network, prompts_of(case), spec, record=RecordOptions(steps=()))


def is_random(case) -> bool:
    """Whether the case drew random numbers, so that only its distribution can be compared."""
    return case["torch_seed"] is not None


def denoising_steps(result: DecodeResult, prompt_blocks: int) -> list[int]:
    """Return the step map counted in forwards that store nothing (block-commit cache)."""
    forwards, step = [], 1 if prompt_blocks else 0
    for number, count in enumerate(result.nfe_by_block):
        inside = count - (1 if number == 0 and prompt_blocks else 0)
        forwards += list(range(step, step + max(inside - 1, 0)))
        step += inside
    place = {forward: index for index, forward in enumerate(forwards)}
    return [place.get(forward, -1) for forward in result.step_map]


def differences(case, network, results: list[DecodeResult], *, reference: bool = True) -> list[str]:
    """Return in words how the results differ from what the case records."""
    fixed = not reference and case.get("reference_bug")
    expected = case["fixed_output_ids"] if fixed else case["output_ids"]
    calls = case["fixed_forward_calls"] if fixed else case["forward_calls"]
    found, nfe = [], max(result.nfe for result in results)
    if nfe != calls:
        found.append(f"{nfe} forwards instead of {calls}")
    for row, (result, prompt) in enumerate(zip(results, case["prompt_ids"], strict=True)):
        full = _full(case, result, prompt, network)
        if full != expected[row]:
            found.append(f"row {row}: tokens {full} instead of {expected[row]}")
        if not fixed:
            found += _map_differences(case, result, row)
    return found


def _full(case, result: DecodeResult, prompt: list[int], network) -> list[int]:
    if case["sampler"] in ("llada20", "llada21"):
        answer = result.response[: case["params"]["gen_length"]]
        end = answer.index(network.config.eos_id) + 1 if network.config.eos_id in answer else len(answer)
        if (
            case["params"].get("eos_early_stop")
            and case["sampler"] == "llada20"
            and case["output_ids"][0][: len(prompt)] == prompt
        ):
            return prompt + answer[:end]
        return answer[:end]
    return _padding(prompt, result) + result.trace.prompt + result.response


def _padding(prompt: list[int], result: DecodeResult) -> list[int]:
    return prompt[: len(prompt) - len(result.trace.prompt)]


def _map_differences(case, result: DecodeResult, row: int) -> list[str]:
    found = []
    if case.get("commit_call"):
        wanted = case["commit_call"][row]
        if result.step_map[: len(wanted)] != wanted:
            found.append(f"row {row}: step map {result.step_map} instead of {wanted}")
    if case.get("commit_denoise_call"):
        wanted = case["commit_denoise_call"][row]
        blocks = len(case["prompt_ids"][row]) // case["params"]["block_length"]
        steps = denoising_steps(result, blocks)
        if steps[: len(wanted)] != wanted:
            found.append(f"row {row}: denoising steps {steps} instead of {wanted}")
    return found
