"""SGLang's algorithm on the CPU, behind the engine's interface, against in-process decoding."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dare_eval.decoding import decode
from dare_eval.engines.ends import EndIds
from dare_eval.engines.rules import rules_text
from dare_eval.engines.sglang_clients import SGLangDecoder
from dare_eval.engines.sglang_names import CONTRACT, REPLAY_STEPS, STEP_MAPS, STOP_LENGTH
from dare_eval.engines.sglang_names import RULES as RULES_KEY
from dare_eval.engines.sglang_settings import aligned_budget, engine_spec, sampling_parameters, write_config
from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.spec import DecodeSpec
from tests.decoding.conftest import prompts, tiny
from tests.engines.stub_runtime import StandInBase, StubEngine
from tests.engines.wheels import source

SDAR = {"gen_length": 16, "block_length": 4, "cache": "block"}
RULES = {
    "threshold": {"policy": "threshold", "threshold": 0.3},
    "quota": {"policy": "quota", "steps": 8},
    "dynamic": {"policy": "dynamic", "steps": 16, "threshold": 0.3},
    "sequential": {"policy": "sequential", "steps": 16},
}


def ends(network) -> EndIds:
    config = network.config
    return EndIds(eos_id=config.eos_id, eot_id=config.eot_id, stop_ids=(config.eos_id, *config.stop_ids))


def wheel_base() -> type:
    """Load the wheel's own base class with its neighbours replaced by empty ones."""
    text = source("sglang", "sglang/srt/dllm/algorithm/base.py")
    names = {
        "sglang.srt.dllm.algorithm": {"get_algorithm": None},
        "sglang.srt.dllm.config": {"DllmConfig": object},
        "sglang.srt.layers.logits_processor": {"LogitsProcessorOutput": object},
        "sglang.srt.model_executor.forward_batch_info": {"ForwardBatch": object},
        "sglang.srt.model_executor.model_runner": {"ModelRunner": object},
        "sglang.srt.server_args": {"ServerArgs": object},
        "sglang.srt.utils": {"is_npu": lambda: False},
    }
    before = dict(sys.modules)
    try:
        for name, members in names.items():
            for end in range(1, len(name.split(".")) + 1):
                part = ".".join(name.split(".")[:end])
                sys.modules.setdefault(part, ModuleType(part)).__path__ = []
            for key, value in members.items():
                setattr(sys.modules[name], key, value)
        module = ModuleType("wheel_base")
        exec(compile(text, "base.py", "exec"), module.__dict__)
        return module.DllmAlgorithm
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]


@pytest.fixture(params=["stand-in", "wheel"])
def base(request):
    return StandInBase if request.param == "stand-in" else wheel_base()


def decoder(family: str, spec: DecodeSpec, tmp_path, base: type) -> SGLangDecoder:
    import json

    network = tiny(family)
    settings = json.loads(write_config(tmp_path / "config.yaml", spec, ends(network)).read_text())
    return SGLangDecoder(StubEngine(network, settings, base), ends(network))


@pytest.mark.parametrize("family", ["sdar", "sdar_moe", "llada2"])
@pytest.mark.parametrize("rule", RULES)
def test_tokens_and_step_maps_equal_in_process_decoding(family, rule, tmp_path, base):
    shape = SDAR if family != "llada2" else {"gen_length": 16, "block_length": 8, "cache": "block"}
    spec = DecodeSpec.build(family, **shape, **RULES[rule], early_stop="block")
    rows = prompts((7, 3, 12, 8, 5))
    ours = decode(tiny(family), rows, spec)
    theirs = decoder(family, spec, tmp_path, base).generate(rows, spec, range(len(rows)))
    for row, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert b.tokens == a.tokens, row
        shown = len(b.response)
        assert b.step_map[:shown] == a.step_map[:shown]
        assert b.stop == a.stop


def test_forwards_are_those_the_engine_ran(tmp_path):
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["quota"], early_stop="none")
    found = decoder("sdar", spec, tmp_path, StandInBase).generate(prompts((8,)), spec, [0])[0]
    assert found.nfe_by_block == [1 + 2 + 1, 3, 3, 3]  # the prompt; per block two steps and one that stores
    assert found.nfe == sum(found.nfe_by_block)


def test_sampled_rows_follow_their_seed_and_not_the_batch(tmp_path):
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["quota"], temperature=1.0, top_k=20, top_p=0.9, early_stop="none")
    rows = prompts((7, 7), seed=1)
    rows[1] = rows[0]
    both = decoder("sdar", spec, tmp_path, StandInBase).generate(rows, spec, [1, 2])
    again = decoder("sdar", spec, tmp_path, StandInBase).generate(rows[:1], spec, [1])
    assert both[0].response == again[0].response
    assert both[0].response != both[1].response
    greedy = dataclasses.replace(spec, temperature=0.0, top_k=None, top_p=None)
    assert both[0].response != decode(tiny("sdar"), rows[:1], greedy)[0].response
    with pytest.raises(UsageError, match="copies"):
        decoder("sdar", spec, tmp_path, StandInBase).generate(rows, spec, [1, 1])


def test_a_row_draws_the_same_numbers_at_every_place_and_attempt(tmp_path):
    """The random numbers follow from the first part of a request's name, which all ranks of an engine see."""
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["quota"], temperature=1.0, early_stop="none")
    row = prompts((7,), seed=1)[0]
    first = decoder("sdar", spec, tmp_path, StandInBase).generate([row], spec, [5])[0]
    last = decoder("sdar", spec, tmp_path, StandInBase).generate([*prompts((4, 9)), row], spec, [1, 2, 5])[2]
    assert first.response == last.response and first.step_map == last.step_map
    engine = decoder("sdar", spec, tmp_path, StandInBase).calls
    parameters = sampling_parameters(engine_spec(spec), len(row), ends(tiny("sdar")))
    asked = {"input_ids": [row] * 3, "sampling_params": [parameters] * 3}
    replies = engine.generate({**asked, "rid": ["dare-0-5#0", "dare-0-5#0-ab12", "dare-0-6#0"]})
    assert replies[0]["output_ids"] == replies[1]["output_ids"] != replies[2]["output_ids"]


def test_replies_carry_the_replay_contract(tmp_path):
    spec = DecodeSpec.build("sdar", **{**SDAR, "gen_length": 8}, **RULES["threshold"], early_stop="block")
    found = decoder("sdar", spec, tmp_path, StandInBase)
    replies = []
    generate = found.calls.generate
    found.calls.generate = lambda payload: replies.extend(generate(payload)) or replies
    found.generate(prompts((7, 5, 12)), spec, [0, 1, 2])
    for reply, length in zip(replies, (7, 5, 12), strict=True):
        meta = reply["meta_info"]
        assert meta[CONTRACT] == [1] and meta[RULES_KEY] == [rules_text(spec)]
        assert meta[STOP_LENGTH] == [len(reply["output_ids"])] == [len(meta[STEP_MAPS])]
        assert (length + len(meta[REPLAY_STEPS])) % 4 == 0
        assert min(meta[REPLAY_STEPS]) >= 1


def test_a_prompt_that_holds_the_mask_is_left_alone(tmp_path):
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["quota"], early_stop="none")
    row = prompts((6,))[0]
    row[5] = tiny("sdar").config.mask_id
    found = decoder("sdar", spec, tmp_path, StandInBase).generate([row], spec, [0])[0]
    assert len(found.response) == 16
    assert tiny("sdar").config.mask_id not in found.response


def test_an_engine_that_decodes_by_other_rules_is_refused(tmp_path):
    spec, other = (DecodeSpec.build("sdar", **SDAR, policy="threshold", threshold=t) for t in (0.3, 0.9))
    with pytest.raises(SetupError, match="other rules") as caught:
        decoder("sdar", other, tmp_path, StandInBase).generate(prompts((7,)), spec, [0])
    assert caught.value.seen == "threshold = 0.9" and caught.value.allowed == "threshold = 0.3"


def test_logits_that_are_no_numbers_end_the_engines_step(tmp_path):
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["threshold"])
    found = decoder("sdar", spec, tmp_path, StandInBase)
    forward = found.calls.forward

    def broken(batch, pp_proxy_tensors):
        out = forward(batch, pp_proxy_tensors)
        out.logits_output.full_logits[0] = float("nan")
        return out

    found.calls.forward = broken
    with pytest.raises(DataError, match="no numbers"):
        found.generate(prompts((8,)), spec, [0])


def test_an_engine_without_our_plugin_is_refused(tmp_path):
    spec = DecodeSpec.build("sdar", **SDAR, **RULES["quota"])
    found = decoder("sdar", spec, tmp_path, StandInBase)
    found.calls.generate = lambda payload: [{"output_ids": [1], "meta_info": {"id": "x"}}]
    with pytest.raises(SetupError, match="step maps"):
        found.generate(prompts((7,)), spec, [0])


def test_the_mode_in_which_states_are_lost_is_refused():
    from dare_eval.engines.sglang_algorithm import algorithm_class

    with pytest.raises(ValueError, match="first-done-first-out"):
        algorithm_class(StandInBase).configure_server_args(SimpleNamespace(dllm_fdfo=False))


@pytest.mark.parametrize(("prompt", "budget"), [(8, 16), (7, 17), (5, 19)])
def test_budgets_end_at_a_block_border(prompt, budget):
    assert aligned_budget(prompt, 16, 4) == budget
