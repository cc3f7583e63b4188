"""Every keyword we pass to SGLang exists in its source, every field we read is produced there (wheel needed)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dare_eval.engines.ends import EndIds
from dare_eval.engines.sglang_names import VERSION, WHOLE
from dare_eval.engines.sglang_plugin import REQUEST, SCHEDULER, STREAMER
from dare_eval.engines.sglang_settings import (
    ARCHITECTURES,
    SGLangOptions,
    command_line,
    sampling_parameters,
    server_arguments,
)
from dare_eval.spec import DecodeSpec
from tests.engines.wheels import definition, fields, parameters, source, wheel

ENGINE = "sglang/srt/entrypoints/engine.py"
SPEC = DecodeSpec.build("sdar", gen_length=8, block_length=4, cache="block", policy="threshold", threshold=0.9)
ENDS = EndIds(eos_id=1, eot_id=None, stop_ids=(1,))
OPTIONS = SGLangOptions(tp=2, dp=2, ep=2, mem_fraction_static=0.8, memory_saver=True)


def test_request_parameters_exist():
    assert set(sampling_parameters(SPEC, 5, ENDS)) <= fields(
        "sglang", "sglang/srt/sampling/sampling_params.py", "SamplingParams"
    )


def test_generate_takes_what_we_pass():
    assert {"input_ids", "sampling_params", "rid"} <= parameters("sglang", ENGINE, "Engine.generate")
    request = source("sglang", "sglang/srt/managers/io_struct.py")
    assert all(name in request for name in ("input_ids", "sampling_params", "rid"))


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("update_weights_from_disk", {"model_path"}),
        ("update_weights_from_tensor", {"named_tensors", "flush_cache"}),
        ("begin_weight_update", set()),
        ("end_weight_update", set()),
        ("get_weights_by_name", {"name", "truncate_size"}),
        ("release_memory_occupation", {"tags"}),
        ("resume_memory_occupation", {"tags"}),
        (
            "init_weights_update_group",
            {"master_address", "master_port", "rank_offset", "world_size", "group_name", "backend"},
        ),
        ("update_weights_from_distributed", {"names", "dtypes", "shapes", "group_name", "flush_cache"}),
    ],
)
def test_control_functions_take_what_we_pass(method, wanted):
    assert wanted <= parameters("sglang", ENGINE, f"Engine.{method}")
    assert f'"/{method}"' in source("sglang", "sglang/srt/entrypoints/http_server.py")


def test_weights_from_memory_need_a_session():
    """The scheduler refuses them outside of one; our decoder opens it."""
    updater = source("sglang", "sglang/srt/managers/scheduler_components/weight_updater.py")
    for kind in ("tensor", "distributed"):
        assert f'"update_weights_from_{kind} must run between "' in updater


def test_server_arguments_exist():
    names = set(server_arguments("m", SPEC, Path("c.yaml"), OPTIONS))
    declared = {
        word
        for name in wheel("sglang").namelist()
        if name.startswith("sglang/srt/") and ("server_args" in name or "arg_groups" in name) and name.endswith(".py")
        for node in ast.walk(ast.parse(source("sglang", name)))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        for word in (node.target.id,)
    }
    assert names <= declared


def test_architectures_are_served():
    config = source("sglang", "sglang/srt/dllm/config.py")
    assert all(f'"{architecture}"' in config for architecture in ARCHITECTURES.values())
    assert '"block_size"' in config  # the key that overrides the table's block size


def test_hooked_methods_exist():
    mixin = "sglang/srt/dllm/mixin/scheduler.py"
    assert parameters("sglang", mixin, "SchedulerDllmMixin.process_batch_result_dllm") == {"batch", "result"}
    assert SCHEDULER.endswith("Scheduler.process_batch_result_dllm")
    assert definition("sglang", "sglang/srt/managers/schedule_batch.py", "Req.update_finish_state")
    assert REQUEST.endswith("schedule_batch.Req.update_finish_state")
    streamer = "sglang/srt/managers/scheduler_components/output_streamer.py"
    assert parameters("sglang", streamer, STREAMER.split(".output_streamer.")[1]) == {"key"}


def test_fields_the_hooks_touch_exist():
    scheduler = source("sglang", "sglang/srt/dllm/mixin/scheduler.py")
    for name in ("dllm_algo_state", "accept_length_per_req_cpu", "next_token_ids", "extend_end", "origin_input_ids"):
        assert name in scheduler
    request = source("sglang", "sglang/srt/managers/schedule_batch.py")
    assert "self.customized_info" in request and "self.finished_len" in request
    batch = fields("sglang", "sglang/srt/model_executor/forward_batch_info.py", "ForwardBatch")
    assert {"input_ids", "positions", "rids", "batch_size", "sampling_info", "dllm_prompt_mask"} <= batch
    sampling = fields("sglang", "sglang/srt/sampling/sampling_batch_info.py", "SamplingBatchInfo")
    assert {"temperatures", "top_ps", "top_ks"} <= sampling


def test_replies_hold_output_ids_and_customized_info():
    manager = source("sglang", "sglang/srt/managers/tokenizer_manager.py")
    assert '"output_ids"' in manager and '"meta_info"' in manager and "customized_info" in manager
    assert not any(f'"{key}"' in manager for key in WHOLE)  # nothing else writes our keys


def test_servers_name_their_weights():
    path = "sglang/srt/managers/io_struct.py"
    for request in ("UpdateWeightFromDiskReqInput", "UpdateWeightsFromDistributedReqInput"):
        assert "weight_version" in fields("sglang", path, request)
    assert '"weight_version": self.config_value("weight_version")' in source(
        "sglang", "sglang/srt/managers/tokenizer_manager.py"
    )


def test_a_request_of_the_same_name_is_refused_while_it_is_worked_on():
    assert "Duplicate request ID detected" in source("sglang", "sglang/srt/managers/tokenizer_manager.py")


def test_the_release_is_the_one_that_is_held_against():
    assert wheel("sglang").filename.rpartition("/")[2].split("-")[1] == VERSION
    info = source("sglang", "sglang/srt/entrypoints/http_server.py")
    assert '"version": __version__' in info and "build_server_info(server_args" in info


def test_the_hook_registry_applies_our_hooks():
    registry = source("sglang", "sglang/srt/plugins/hook_registry.py")
    scope: dict = {"__name__": "wheel_hooks"}
    exec(compile(registry, "hook_registry.py", "exec"), scope)
    import sys
    from types import ModuleType

    class Thing:
        def whole(self, key):
            return False

    module = ModuleType("hooked_module")
    module.Thing = Thing
    sys.modules["hooked_module"] = module
    try:
        from dare_eval.engines.sglang_plugin import whole_request_key

        hooks, kinds = scope["HookRegistry"], scope["HookType"]
        hooks.register("hooked_module.Thing.whole", whole_request_key, kinds.AFTER)
        hooks.apply_hooks()
        assert Thing().whole("dllm_stop_length") is True
        assert Thing().whole("step_maps") is False
    finally:
        del sys.modules["hooked_module"]


def test_the_command_line_has_a_flag_per_argument():
    words = command_line(server_arguments("m", SPEC, Path("c.yaml"), OPTIONS))
    assert words[words.index("--tp-size") :][:2] == ["--tp-size", "2"]
    assert "--enable-memory-saver" in words and "--trust-remote-code" not in words
