"""LMDeploy's offline engine: token ids in, rows out, weights in buckets, sleep and wake; held against the wheel."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import pytest
import torch

from dare_eval.engines.lmdeploy import LMDeployOptions, engine_spec
from dare_eval.engines.lmdeploy_pipeline import OfflinePipeline
from dare_eval.errors import SetupError, UsageError
from dare_eval.networks import load_network, read_config, resolve_model_path
from dare_train.rl.backends import BackendFacts, Request, check_backend
from dare_train.rl.colocated import LMDeployRollout, only_device
from tests.engines.stub_lmdeploy import install
from tests.engines.test_lmdeploy import ENDS, spec
from tests.engines.wheels import fields, parameters, source

SAMPLED = {"temperature": 1.0, "early_stop": "block"}


def opened(monkeypatch, answer, **options) -> OfflinePipeline:
    install(monkeypatch, answer)
    return OfflinePipeline("m", engine_spec(spec()), LMDeployOptions(**options), ENDS)


def test_token_ids_go_in_and_rows_come_out_in_order(monkeypatch):
    engine = opened(monkeypatch, lambda ids, config: ([ids[0], 6, 125], "stop"))
    found = engine.generate([[1, 2, 3], [4]], spec(), [0, 1])
    assert [(row.tokens, row.response, row.stop) for row in found] == [
        ([1, 6], [1, 6, 125], "eos"),
        ([4, 6], [4, 6, 125], "eos"),
    ]
    assert found[0].nfe is None and found[0].step_map is None and found[0].wall_s > 0


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_a_row_that_the_engine_gives_up_on_is_an_error(monkeypatch, finish):
    engine = opened(monkeypatch, lambda ids, config: ([5], finish))
    with pytest.raises(SetupError, match="gave up"):
        engine.generate([[1]], spec(), [0])


def test_a_request_that_the_engine_refuses_is_an_error(monkeypatch):
    def answer(ids, config):
        raise RuntimeError("context too long")

    with pytest.raises(SetupError, match="context too long"):
        opened(monkeypatch, answer).generate([[1]], spec(), [0])


def test_another_rule_needs_another_engine(monkeypatch):
    engine = opened(monkeypatch, lambda ids, config: ([5], "stop"))
    with pytest.raises(UsageError, match="dllm_denoising_steps = 2"):
        engine.generate([[1]], spec("quota"), [0])


def test_weights_go_in_buckets_and_the_last_one_says_so(monkeypatch):
    engine = opened(monkeypatch, lambda ids, config: ([5], "stop"))
    engine.load_tensors([(str(n), torch.full((4,), float(n))) for n in range(3)], limit=32)
    sent = engine.pipe.async_engine.params
    assert [list(one.serialized_named_tensors) for one in sent] == [["0", "1"], ["2"]]
    assert [one.finished for one in sent] == [False, True]


def test_it_sleeps_and_wakes_weights_first(monkeypatch):
    engine = opened(monkeypatch, lambda ids, config: ([5], "stop"))
    engine.wake("weights")  # it is awake: nothing is asked
    engine.sleep()
    engine.wake("weights")
    engine.wake("kv_cache")
    assert engine.pipe.async_engine.asked == ["sleep 2", "wake weights", "wake kv_cache"]
    assert engine.generate([[1]], spec(), [0])[0].tokens == [5]
    engine.close()


def facts(**more) -> BackendFacts:
    config = read_config(resolve_model_path("tiny-bd-countdown"))
    place = SimpleNamespace(device=torch.device("cuda:1"))
    network = SimpleNamespace(config=config, parameters=lambda: iter([place]))
    given = {"network": network, "folder": "tiny-bd-countdown", "attn_backend": "auto", "spec": spec(**SAMPLED)}
    return BackendFacts(**{**given, **more})


def test_a_rollout_takes_weights_decodes_and_gives_memory_back(monkeypatch):
    seen = []
    config = read_config(resolve_model_path("tiny-bd-countdown"))

    def answer(ids, config_):
        seen.append((os.environ.get("CUDA_VISIBLE_DEVICES"), config_.random_seed, config_.do_sample))
        return [7, config.eos_id], "stop"

    made = install(monkeypatch, answer)
    rollout = LMDeployRollout(facts(options={"max_batch_size": 8}))
    started = made[0].config
    assert (started.empty_init, started.enable_mp_engine, started.max_batch_size) == (True, True, 8)
    network = load_network("tiny-bd-countdown")
    for version in range(2):
        rollout.wake()
        rollout.sync(network.named_parameters(), version)
        request = Request(prompts=[[3, 4], [3, 4]], seeds=[1, 2], spec=spec(**SAMPLED))
        first, second = rollout.generate(request)
        rollout.sleep()
    assert {name for one in made[0].async_engine.params for name in one.serialized_named_tensors} == set(
        dict(network.named_parameters())
    )
    assert all(
        value.dtype == torch.bfloat16
        for one in made[0].async_engine.params
        for value in one.serialized_named_tensors.values()
    )
    assert sorted(seed for _, seed, _ in seen) == [1, 1, 2, 2] and all(sampled for *_, sampled in seen)
    assert first.response == second.response == [7, config.eos_id, *[config.mask_id] * 14]
    assert (first.tokens, first.stop, first.nfe, set(first.step_map)) == ([7], "eos", 0, {-1})
    assert made[0].async_engine.asked == ["sleep 2", "wake weights", "wake kv_cache", "sleep 2"]


def test_what_a_rollout_cannot_have_is_refused(monkeypatch):
    install(monkeypatch, lambda ids, config: ([5], "stop"))
    with pytest.raises(UsageError, match="max_batch_size"):
        LMDeployRollout(facts(options={"max_batch": 8}))
    with pytest.raises(UsageError, match="base checkpoint"):
        LMDeployRollout(facts(folder=""))
    place = SimpleNamespace(device=torch.device("cpu"))
    with pytest.raises(UsageError, match="on cpu"):
        LMDeployRollout(facts(network=SimpleNamespace(parameters=lambda: iter([place]))))
    rollout = LMDeployRollout(facts())
    with pytest.raises(UsageError, match="no states"):
        rollout.generate(Request(prompts=[[1]], seeds=[1], spec=spec(**SAMPLED), record=1))


@pytest.mark.parametrize(
    ("backend", "recorder"), [("lmdeploy", "step_map"), ("lmdeploy", "tree"), ("sglang", "states")]
)
def test_algorithms_that_replay_more_than_the_engine_tells_are_refused(backend, recorder):
    with pytest.raises(UsageError, match=f"which keeps .*records {recorder}"):
        check_backend(backend, "some algorithm", recorder, [spec()])


def test_backends_refuse_rules_before_anything_starts():
    for backend in ("inprocess", "sglang", "lmdeploy"):
        check_backend(backend, "some algorithm", "final", [spec()])
    with pytest.raises(UsageError, match="half precision"):
        check_backend("lmdeploy", "some algorithm", "final", [spec(dtype="float32")])


def test_processes_beside_it_see_one_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    with only_device(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "6"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,6"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    with only_device(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_what_the_pipeline_calls_exists_in_the_wheel():
    engine = "lmdeploy/serve/core/async_engine.py"
    wanted = {"messages", "session_id", "gen_config", "do_preprocess", "input_ids"}
    assert wanted <= parameters("lmdeploy", engine, "AsyncEngine.preprocess")
    assert {"request", "stream_response"} <= parameters("lmdeploy", engine, "AsyncEngine.generate")
    assert parameters("lmdeploy", engine, "AsyncEngine.sleep") == {"level"}
    assert parameters("lmdeploy", engine, "AsyncEngine.wakeup") == {"tags"}
    assert {"token_ids", "finish_reason"} <= fields("lmdeploy", engine, "GenOut")
    assert {"model_path", "backend_config"} <= parameters("lmdeploy", "lmdeploy/pipeline.py", "Pipeline.__init__")
    assert not parameters("lmdeploy", "lmdeploy/pipeline.py", "Pipeline.close")
    pipeline = source("lmdeploy", "lmdeploy/pipeline.py")
    for name in ("async_engine", "internal_thread", "session_mgr"):
        assert f"self.{name} =" in pipeline
    assert "self.loop" in pipeline
    for path in ("engine/engine.py", "engine/mp_engine/base.py"):
        owner = "Engine" if path == "engine/engine.py" else "MPEngine"
        assert parameters("lmdeploy", f"lmdeploy/pytorch/{path}", f"{owner}.update_params") == {"request"}
    request = fields("lmdeploy", "lmdeploy/serve/openai/protocol.py", "UpdateParamsRequest")
    assert {"serialized_named_tensors", "finished"} <= request
    assert parameters("lmdeploy", "lmdeploy/utils.py", "serialize_state_dict") == {"state_dict"}


def test_the_wheel_opens_what_is_sent_as_we_send_it():
    """The receiver takes (name, (function, arguments)) pairs whose seventh argument is the GPU of its own process."""
    receiver = source("lmdeploy", "lmdeploy/pytorch/engine/model_agent/agent.py")
    assert "args[6] = torch.cuda.current_device()" in receiver
    assert "return [(k, _construct(v)) for k, v in weights]" in receiver
    sender = source("lmdeploy", "lmdeploy/utils.py")
    assert "[(k, reduce_tensor(v)) for k, v in state_dict.items()]" in sender
    assert re.search(r"if request\.finished:\s+for m in .*:\s+process_weights_after_loading", receiver)


def test_the_end_token_is_asked_for_and_told():
    engine = source("lmdeploy", "lmdeploy/serve/core/async_engine.py")
    assert "gen_config.include_stop_str_in_output and finish_reason == 'stop'" in engine
