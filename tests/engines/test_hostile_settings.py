"""Settings that an engine or a client cannot keep: refused when a run is planned, never changed in silence."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from dare_eval.engines.ends import EndIds
from dare_eval.engines.lmdeploy import LMDeployOptions, engine_arguments, generation_arguments
from dare_eval.engines.lmdeploy import engine_spec as lmdeploy_spec
from dare_eval.engines.lmdeploy_pipeline import engine_config
from dare_eval.engines.openai import OpenAIClient, Sampling, root_of
from dare_eval.engines.sglang_clients import OfflineCalls, SGLangDecoder, connect
from dare_eval.engines.sglang_names import ALGORITHM, VERSION
from dare_eval.engines.sglang_settings import SGLangOptions
from dare_eval.engines.sglang_settings import engine_spec as sglang_spec
from dare_eval.errors import SetupError, UsageError
from dare_eval.spec import DecodeSpec
from dare_train.rl.backends import check_backend
from tests.engines.raw_server import answering, reply

pytestmark = pytest.mark.xdist_group("opencompass")
DECODING = {"gen_length": 8, "block_length": 4, "steps": 6, "cache": "block"}
URL = "http://127.0.0.1:9"
BLOCK = {"path": "tiny-bd-countdown", "decoding": DECODING}


def facts(name: str, **settings):
    from dare_eval.models.lmdeploy import LMDeployModel
    from dare_eval.models.openai import OpenAIModel
    from dare_eval.models.sglang import SGLangModel

    kinds = {"sglang": SGLangModel, "lmdeploy": LMDeployModel, "openai": OpenAIModel}
    return kinds[name].facts(settings)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("sglang", {**BLOCK, "url": "127.0.0.1:30000"}, "no URL"),
        ("sglang", {**BLOCK, "url": ""}, "no URL"),
        ("sglang", {**BLOCK, "url": URL, "engine": {"tp": 2}}, "engine.tp"),
        ("sglang", {**BLOCK, "server": {"retries": 2}}, "without a server"),
        ("sglang", {**BLOCK, "record_x0": True}, "guess at every forward"),
        ("sglang", {**BLOCK, "device": "cuda"}, "device"),
        ("sglang", {**BLOCK, "engine": ["tp"]}, "no dict of options"),
        ("sglang", {**BLOCK, "engine": {"tpp": 2}}, "did you mean 'tp'"),
        ("sglang", {**BLOCK, "engine": {"mem_fraction_static": 2}}, "mem_fraction_static"),
        ("sglang", {**BLOCK, "likelihood": {"samples": 2}}, "cannot score likelihoods"),
        ("sglang", {"path": "tiny-countdown", "decoding": {"gen_length": 8, "block_length": 8, "steps": 8}}, "family"),
        ("sglang", {**BLOCK, "decoding": {**DECODING, "cache": "none"}}, "cannot honour cache"),
        ("lmdeploy", {**BLOCK, "url": URL}, "half precision"),
        ("lmdeploy", {**BLOCK, "engine": {"session_len": -1}}, "session_len"),
        ("lmdeploy", {**BLOCK, "engine": {"cache_max_entry_count": "much"}}, "cache_max_entry_count"),
        ("openai", {"path": "m", "url": URL}, "needs generation"),
        ("openai", {"path": "m", "url": URL, "generation": {"temperature": 0}}, "needs gen_length"),
        ("openai", {"path": "m", "url": URL, "generation": 5}, "no dict of options"),
        ("openai", {"path": "m", "url": "h:1", "generation": {"gen_length": 8}}, "no URL"),
        ("openai", {"path": "m", "url": f"{URL}/v1/chat/completions", "generation": {"gen_length": 8}}, "one request"),
        ("openai", {"path": "m", "url": URL, "generation": {"gen_length": 8}, "server": {"retry": 1}}, "'retries'"),
        ("openai", {"path": "m", "url": URL, "generation": {"gen_length": 8}, "top_k": 3}, "top_k"),
    ],
)
def test_a_plan_refuses_what_would_have_no_effect(name, settings, said):
    with pytest.raises(UsageError, match=said):
        facts(name, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"gen_length": 0}, {"gen_length": "8"}, {"gen_length": 8, "temperature": "hot"},
        {"gen_length": 8, "temperature": float("nan")}, {"gen_length": 8, "temperature": -1},
        {"gen_length": 8, "top_p": 0}, {"gen_length": 8, "top_p": "x"}, {"gen_length": 8, "seed": 1.5},
        {"gen_length": 8, "extra": {"n": 4}}, {"gen_length": 8, "extra": {"max_tokens": 4}},
        {"gen_length": 8, "extra": {"stream": True}}, {"gen_length": 8, "extra": ["top_k"]},
    ],
)  # fmt: skip
def test_a_request_that_would_not_be_what_is_recorded_is_refused(settings):
    with pytest.raises(UsageError):
        Sampling(**settings)


def test_the_recorded_spec_names_engine_and_release():
    assert facts("sglang", **BLOCK).decode_spec["engine"] == f"sglang {VERSION}"
    named = facts("sglang", **BLOCK, url=URL, engine={"version": "0.6.0"})
    assert named.decode_spec["engine"] == "sglang 0.6.0"
    half = {**DECODING, "dtype": "bfloat16", "steps": 8}
    assert facts("lmdeploy", path="tiny-bd-countdown", decoding=half).decode_spec["engine"] == "lmdeploy 0.18.0"


ENDS = EndIds(eos_id=1, eot_id=None, stop_ids=(1,))


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (b'{"version": "0.5.9", "dllm_algorithm": "DareLowConfidence"}', "another release"),
        (b'{"version": "0.5.23", "dllm_algorithm": "LowConfidence"}', "does not run our decoding algorithm"),
        (b'{"version": "0.5.23"}', "does not run our decoding algorithm"),
    ],
)
def test_a_server_of_another_release_or_algorithm_is_refused(info, said):
    with answering(reply(info)) as server, pytest.raises(SetupError, match=said):
        connect(server.url, ENDS)


def test_a_release_that_is_named_is_taken():
    with answering(reply(f'{{"version": "0.6.0", "dllm_algorithm": "{ALGORITHM}"}}'.encode())) as server:
        assert isinstance(connect(server.url, ENDS, version="0.6.0"), SGLangDecoder)


def test_an_installed_engine_of_another_release_is_refused(monkeypatch):
    made = ModuleType("sglang")
    made.__version__, made.Engine = "0.5.9", lambda **arguments: arguments
    monkeypatch.setitem(sys.modules, "sglang", made)
    with pytest.raises(SetupError, match="another release") as caught:
        OfflineCalls({})
    assert "0.5.9" in str(caught.value) and VERSION in str(caught.value)


def test_options_that_the_engine_does_not_keep_are_an_error():
    def forgets(**wanted):
        return SimpleNamespace(**{**wanted, "dllm_block_length": None})

    with pytest.raises(SetupError, match="drops an option") as caught:
        engine_config(forgets, {"dllm_block_length": 4})
    assert "dllm_block_length = 4" in caught.value.allowed
    with pytest.raises(SetupError, match="does not take an option"):
        engine_config(lambda dtype: dtype, {"dllm_block_length": 4})


def test_lmdeploy_never_bans_end_tokens():
    """Its ``ignore_eos`` puts the end tokens among the banned words, so other answers would come out."""
    spec = DecodeSpec.build("sdar", **{**DECODING, "steps": 8, "dtype": "bfloat16", "early_stop": "none"})
    assert lmdeploy_spec(spec).early_stop == "block"
    assert generation_arguments(spec, 0, ENDS)["ignore_eos"] is False
    assert "version" not in engine_arguments(spec, LMDeployOptions())
    with pytest.raises(UsageError, match="temperature"):
        lmdeploy_spec(DecodeSpec.build("sdar", **{**DECODING, "steps": 8, "dtype": "bfloat16", "temperature": 2.5}))


def test_rollouts_and_held_out_answers_of_one_server_follow_one_set_of_rules():
    first, second = (DecodeSpec.build("sdar", **{**DECODING, "steps": steps}) for steps in (6, 8))
    check_backend("sglang", "cj_grpo", "step_map", (first, first))
    with pytest.raises(UsageError, match="one set of rules"):
        check_backend("sglang", "cj_grpo", "step_map", (first, second))
    check_backend("inprocess", "cj_grpo", "step_map", (first, second))


@pytest.mark.parametrize("url", ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/v1/"])
def test_the_address_of_an_openai_server_may_name_its_api(url):
    assert root_of(url) == "http://h:8000"


def test_a_model_that_the_server_does_not_have_and_a_key_that_is_missing_are_told(monkeypatch):
    with (
        answering(reply(b'{"data": [{"id": "llada"}]}')) as server,
        pytest.raises(SetupError, match="no model 'x'") as caught,
    ):
        OpenAIClient(server.url, "x").check()
    assert caught.value.allowed == "llada"
    with answering(reply(b'{"data": ["llada"]}')) as server, pytest.raises(Exception, match="another form"):
        OpenAIClient(server.url, "llada").check()
    monkeypatch.delenv("THEIR_KEY", raising=False)
    with pytest.raises(SetupError, match="THEIR_KEY is not set"):
        OpenAIClient(URL, "x", key_env="THEIR_KEY")


@pytest.mark.parametrize("options", [{"tp": True}, {"dp": 1.5}, {"mem_fraction_static": "half"}])
def test_a_layout_of_another_type_is_refused(options):
    with pytest.raises(UsageError):
        SGLangOptions(**options)


def test_the_spec_of_an_unserved_policy_is_refused():
    spec = DecodeSpec.build("llada2", gen_length=32, block_length=32, cache="block", policy="dynamic", threshold=0.9,
                            edit_threshold=0.9)  # fmt: skip
    with pytest.raises(UsageError, match="edit_threshold"):
        sglang_spec(spec)
