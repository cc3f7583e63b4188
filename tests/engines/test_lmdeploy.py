"""LMDeploy: every option reaches its config class, our policies mean what its strategies do, refusals."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from dare_eval.decoding import decode
from dare_eval.engines.ends import EndIds
from dare_eval.engines.lmdeploy import (
    VERSION,
    LMDeployOptions,
    Server,
    command_line,
    engine_arguments,
    engine_spec,
    generation_arguments,
    server_request,
)
from dare_eval.engines.lmdeploy_pipeline import OfflinePipeline
from dare_eval.errors import SetupError, UsageError
from dare_eval.networks import AttentionMask
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.engines.wheels import fields, source, wheel

ENDS = EndIds(eos_id=125, eot_id=124, stop_ids=(125,))
RULES = {
    "threshold": {"policy": "threshold", "threshold": 0.3},
    "dynamic": {"policy": "dynamic", "steps": 16, "threshold": 0.3},
    "quota": {"policy": "quota", "steps": 8},
    "sequential": {"policy": "sequential", "steps": 16},
}


def spec(rule: str = "threshold", family: str = "sdar", **more) -> DecodeSpec:
    shape = {"gen_length": 16, "block_length": 4, "cache": "block", "early_stop": "none"}
    return DecodeSpec.build(family, **{"dtype": "bfloat16", **shape, **RULES[rule], **more})


@pytest.mark.parametrize("rule", RULES)
def test_every_option_is_a_field_of_the_engine(rule):
    found = engine_arguments(engine_spec(spec(rule)), LMDeployOptions(session_len=4096, empty_init=True))
    known = fields("lmdeploy", "lmdeploy/messages.py", "PytorchEngineConfig")
    assert set(found) <= known
    assert {"dllm_block_length", "dllm_unmasking_strategy", "dllm_denoising_steps"} <= set(found)


def test_the_release_and_its_ways_are_those_that_are_held_against():
    assert wheel("lmdeploy").filename.rpartition("/")[2].split("-")[1] == VERSION
    sampling = source("lmdeploy", "lmdeploy/pytorch/messages.py")
    assert "bad_words += stop_words" in sampling  # why ignore_eos is never sent
    assert "self.temperature >= 0 and self.temperature <= 2" in source("lmdeploy", "lmdeploy/messages.py")


def test_generation_and_server_keys_exist():
    sampled = spec("quota", temperature=0.7, top_p=0.9, top_k=40)
    assert set(generation_arguments(sampled, 3, ENDS)) <= fields("lmdeploy", "lmdeploy/messages.py", "GenerationConfig")
    request = fields("lmdeploy", "lmdeploy/serve/openai/protocol.py", "GenerateReqInput")
    assert set(server_request([1], spec(), ENDS)) <= request
    answer = fields("lmdeploy", "lmdeploy/messages.py", "Response")
    assert {"token_ids", "input_token_len", "finish_reason", "error_message"} <= answer
    served = fields("lmdeploy", "lmdeploy/serve/openai/protocol.py", "GenerateReqOutput")
    assert {"output_ids", "meta_info"} <= served
    assert "'/generate'" in source("lmdeploy", "lmdeploy/serve/openai/endpoints/generate.py")


@pytest.mark.parametrize("rule", RULES)
def test_its_unmasking_equals_our_policies(rule):
    """The wheel's own unmasking code, driven block by block, reveals what in-process decoding reveals."""
    wanted = spec(rule)
    network = tiny("sdar")
    row = prompts((8,))[0]
    ours = decode(network, [row], wanted)[0]
    assert _decoded_by_the_wheel(network, row, wanted) == ours.response


def _decoded_by_the_wheel(network, row, wanted):
    module = _unmasking()
    given = engine_arguments(engine_spec(wanted), LMDeployOptions())
    config = SimpleNamespace(
        block_length=given["dllm_block_length"],
        denoising_steps=given["dllm_denoising_steps"],
        confidence_threshold=given.get("dllm_confidence_threshold", 0.85),
        unmasking_strategy=given["dllm_unmasking_strategy"],
    )
    processor, ids = module.UnmaskingProcessor(config), list(row)
    for start in range(len(row), len(row) + wanted.gen_length, 4):
        block = torch.full((4,), network.config.mask_id)
        state = torch.full((4,), module.DLLM_MASKED)
        while (state == module.DLLM_MASKED).any():
            whole = torch.cat((torch.tensor(ids), block))[None]
            with torch.no_grad():
                logits = network(whole, mask=AttentionMask.block_causal(start + 4, 4))[0, start:]
            logits[:, network.config.mask_id] = -torch.inf
            state, block = processor(logits, block, logits.argmax(-1), state)
            block = torch.where(state == module.DLLM_MASKED, network.config.mask_id, block)
        ids += block.tolist()
    return ids[len(row) :]


def _unmasking():
    text = source("lmdeploy", "lmdeploy/pytorch/strategies/dllm/unmasking.py")
    consts = source("lmdeploy", "lmdeploy/pytorch/consts.py")
    before = dict(sys.modules)
    try:
        for name in ("lmdeploy", "lmdeploy.pytorch", "lmdeploy.pytorch.consts", "lmdeploy.pytorch.config"):
            sys.modules[name] = ModuleType(name)
            sys.modules[name].__path__ = []
        known = sys.modules["lmdeploy.pytorch.consts"]
        exec(compile(consts, "consts.py", "exec"), known.__dict__)
        sys.modules["lmdeploy.pytorch"].consts = known
        names = ("low_confidence_static", "low_confidence_dynamic", "sequential")
        sys.modules["lmdeploy.pytorch.config"].UnmaskingStrategy = SimpleNamespace(**{n.upper(): n for n in names})
        sys.modules["lmdeploy.pytorch.config"].DLLMConfig = object
        module = ModuleType("unmasking")
        exec(compile(text, "unmasking.py", "exec"), module.__dict__)
        return module
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            DecodeSpec.build(
                "llada2", gen_length=32, block_length=32, policy="threshold", threshold=0.9, cache="block"
            ),
            "family",
        ),
        (DecodeSpec.build("sdar", gen_length=8, block_length=4, policy="quota", steps=8, cache="none"), "cache"),
        (
            spec("dynamic").__class__.build(
                "sdar",
                gen_length=16,
                block_length=4,
                policy="dynamic",
                steps=8,
                threshold=0.3,
                cache="block",
                dtype="bfloat16",
            ),
            "at least one",
        ),
        (
            DecodeSpec.build(
                "sdar", gen_length=16, block_length=4, policy="quota", steps=12, cache="block", dtype="bfloat16"
            ),
            "equally many",
        ),
        (
            DecodeSpec.build(
                "sdar", gen_length=16, block_length=4, policy="eb", threshold=0.3, cache="block", dtype="bfloat16"
            ),
            "policy",
        ),
        (spec("quota", dtype="float32"), "half precision"),
    ],
)
def test_what_the_engine_cannot_honour_is_refused(wanted, said):
    with pytest.raises(UsageError, match=said):
        engine_spec(wanted)


@pytest.mark.parametrize("options", [{"tp": 0}, {"cache_max_entry_count": 1.5}, {"max_batch_size": True}])
def test_layouts_out_of_range_are_refused(options):
    with pytest.raises(UsageError):
        LMDeployOptions(**options)


def test_sampling_by_the_server_is_refused_because_it_takes_no_seed():
    with pytest.raises(UsageError, match="no seed"):
        server_request([1], spec("quota", temperature=1.0), ENDS)


def test_without_the_package_the_message_names_the_extra():
    with pytest.raises(SetupError, match="not installed"):
        OfflinePipeline("m", engine_spec(spec()), LMDeployOptions(), ENDS)


def test_the_server_client_reads_replies(monkeypatch):
    server = Server("http://engine", ENDS)
    reply = {"output_ids": [5, 6], "meta_info": {"finish_reason": {"type": "stop"}}}
    monkeypatch.setattr(server.client, "post_all", lambda path, bodies: [reply for _ in bodies])
    found = server.generate([[1, 2, 3]], spec(), [0], ["abc"])[0]
    assert (found.tokens, found.stop) == ([5, 6], "eos")


def test_the_command_line_names_every_option():
    words = command_line("m", engine_arguments(engine_spec(spec()), LMDeployOptions(tp=2)))
    assert words[:3] == ["serve", "api_server", "m"]
    assert words[words.index("--dllm-unmasking-strategy") + 1] == "low_confidence_dynamic"
