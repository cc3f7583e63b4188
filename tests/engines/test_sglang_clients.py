"""SGLang's settings and clients without an engine: refusals, weight buckets, checks after a sync."""

from __future__ import annotations

import pytest
import torch

from dare_eval.engines.buckets import buckets
from dare_eval.engines.ends import EndIds
from dare_eval.engines.sglang_clients import SGLangDecoder
from dare_eval.engines.sglang_replies import check_label
from dare_eval.engines.sglang_settings import SGLangOptions, engine_spec
from dare_eval.errors import SetupError, UsageError
from dare_eval.spec import DecodeSpec

ENDS = EndIds(eos_id=1, eot_id=None, stop_ids=(1,))


class Recorded:
    """``Calls`` that note what they were asked and answer from a script."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def do(self, name, /, **arguments):
        self.asked.append((name, arguments))
        return self.answer

    def generate(self, payload):
        raise AssertionError("not asked for")

    def version(self):
        return "0"


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"cache": "none"}, "cache"),
        ({"policy": "dynamic", "steps": 8, "threshold": 0.9, "parity": ("overwrite_committed",)}, "parity"),
    ],
)
def test_what_the_engine_cannot_honour_is_refused(settings, what):
    settings = {"policy": "quota", "steps": 8, "cache": "block", **settings}
    settings = settings if settings["policy"] == "dynamic" else {k: v for k, v in settings.items() if k != "threshold"}
    spec = DecodeSpec.build("sdar", gen_length=8, block_length=4, **settings)
    with pytest.raises(UsageError, match=what):
        engine_spec(spec)


def test_families_that_are_not_served_are_sent_to_the_native_decoder():
    spec = DecodeSpec.build("llada", gen_length=8, block_length=4, policy="quota", steps=8)
    with pytest.raises(UsageError, match="does not serve family 'llada'"):
        engine_spec(spec)


def test_the_spec_names_the_engine_and_where_rows_leave():
    spec = DecodeSpec.build(
        "llada2", gen_length=32, block_length=32, policy="threshold", threshold=0.9, cache="block", early_stop="prefix"
    )
    found = engine_spec(spec, "0.5.23")
    assert (found.engine, found.early_stop) == ("sglang 0.5.23", "block")


@pytest.mark.parametrize("options", [{"pp": 2}, {"tp": 0}, {"tp": 2, "ep": 3}, {"max_running_requests": 0}])
def test_layouts_the_engine_does_not_have_are_refused(options):
    with pytest.raises(UsageError):
        SGLangOptions(**options)


def test_buckets_keep_order_and_limit():
    named = [(str(n), torch.zeros(n)) for n in (4, 4, 1, 9, 2)]
    found = list(buckets(named, 20))
    assert [[name for name, _ in bucket] for _, bucket in found] == [["4"], ["4", "1"], ["9"], ["2"]]
    assert [last for last, _ in found] == [False, False, False, True]
    assert list(buckets([], 20)) == []


def test_weights_are_sent_bucket_by_bucket_and_the_cache_flushed_once():
    calls = Recorded((True, ""))
    decoder = SGLangDecoder(calls, ENDS)
    decoder.load_tensors([("a", torch.zeros(4)), ("b", torch.zeros(4))], 3, limit=16)
    names = [name for name, _ in calls.asked]
    assert names == ["begin_weight_update", *["update_weights_from_tensor"] * 2, "end_weight_update"]
    assert [arguments["flush_cache"] for _, arguments in calls.asked[1:3]] == [False, True]
    assert decoder.weights == 3


def test_an_engine_that_did_not_take_the_weights_is_an_error():
    with pytest.raises(SetupError, match="did not take"):
        SGLangDecoder(Recorded({"success": False, "message": "shape"}), ENDS).load_folder("folder", 1)


def test_weights_carry_a_label_and_a_reply_of_others_is_an_error():
    calls = Recorded({"success": True})
    decoder = SGLangDecoder(calls, ENDS)
    decoder.load_folder("folder", 3, "run-3")
    assert calls.asked == [("update_weights_from_disk", {"model_path": "folder", "weight_version": "run-3"})]
    assert (decoder.weights, decoder.label) == (3, "run-3")
    told = {"meta_info": {"weight_version": "run-3"}}
    assert check_label(told, "run-3") == check_label(told, None) == "run-3"
    assert check_label({"meta_info": {}}, None) is None
    for other in ({"weight_version": "default"}, {"weight_version": "their-4"}, {}):
        with pytest.raises(SetupError, match="weights changed in the middle"):
            check_label({"meta_info": other}, "run-3")


def test_weights_are_compared_after_a_sync():
    SGLangDecoder(Recorded([[0.5, 0.25]]), ENDS).verify("w", [0.5, 0.25])
    SGLangDecoder(Recorded({"parameter": [0.5, 0.25]}), ENDS).verify("w", [0.5, 0.25])
    with pytest.raises(SetupError, match="other values"):
        SGLangDecoder(Recorded([[0.5, 0.0]]), ENDS).verify("w", [0.5, 0.25])
