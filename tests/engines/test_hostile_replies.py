"""Replies that are JSON and still no answer: each is an error that names what was seen, none is scored."""

from __future__ import annotations

import copy

import pytest

from dare_eval.engines.ends import EndIds
from dare_eval.engines.lmdeploy import Server
from dare_eval.engines.openai import answer_of
from dare_eval.engines.rules import rules_text
from dare_eval.engines.sglang_clients import SGLangDecoder
from dare_eval.engines.sglang_names import CONTRACT, REPLAY_STEPS, REPLAY_TOKENS, RULES
from dare_eval.engines.sglang_replies import Sent, result_of
from dare_eval.errors import DareError, DataError, SetupError
from dare_eval.spec import DecodeSpec

ENDS = EndIds(eos_id=1, eot_id=None, stop_ids=(1,), vocab_size=50, mask_id=49)
SPEC = DecodeSpec.build("sdar", gen_length=8, block_length=4, cache="block", policy="threshold", threshold=0.9)
META = {REPLAY_TOKENS: list(range(2, 10)), REPLAY_STEPS: [1, 1, 2, 3] * 2, CONTRACT: [1], RULES: [rules_text(SPEC)]}
REPLY = {"output_ids": list(range(2, 10)), "meta_info": {"finish_reason": {"type": "length"}, **META}}
OTHER = DecodeSpec.build("sdar", gen_length=8, block_length=4, cache="block", policy="threshold", threshold=0.5)


def read(reply):
    return result_of(reply, Sent(prompt_length=4, spec=SPEC, ends=ENDS, wall_s=0.0))


def meta(**changes):
    return {**REPLY, "meta_info": {**REPLY["meta_info"], **changes}}


def test_the_whole_reply_is_read():
    found = read(REPLY)
    assert found.tokens == list(range(2, 10)) and found.stop == "length" and found.nfe_by_block == [5, 4]
    ended = meta(**{REPLAY_TOKENS: [2, 3, 1, 5], REPLAY_STEPS: [1, 2, 2, 3]})
    assert read({**ended, "output_ids": [2, 3, 1]}).tokens == [2, 3]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (None, "lacks a part"),
        ([], "lacks a part"),
        ("fine", "lacks a part"),
        ({}, "lacks a part"),
        ({"error": {"message": "out of memory"}}, "answers with an error"),
        ({"detail": "Not Found"}, "answers with an error"),
        ({"meta_info": None}, "another form"),
        ({"meta_info": [1]}, "another form"),
        ({"meta_info": {}}, "no step maps"),
        ({**REPLY, "output_ids": None}, "another form"),
        ({**REPLY, "output_ids": "2 3"}, "another form"),
        ({**REPLY, "output_ids": [2.0]}, "another form"),
        ({**REPLY, "output_ids": [True]}, "another form"),
        ({"meta_info": REPLY["meta_info"]}, "lacks a part"),
        ({**REPLY, "output_ids": [7]}, "belong together"),
        ({**REPLY, "output_ids": list(range(2, 12))}, "belong together"),
        ({**REPLY, "output_ids": [-1]}, "outside the vocabulary"),
        (meta(**{REPLAY_TOKENS: [2, 3, 4, 5, 6, 7, 8, 50]}), "outside the vocabulary"),
        (meta(**{REPLAY_TOKENS: [None] * 8}), "another form"),
        (meta(**{REPLAY_STEPS: [1, 1, 2, 3]}), "belong together"),
        (meta(**{REPLAY_STEPS: [0, 1, 2, 3] * 2}), "belong together"),
        (meta(**{REPLAY_STEPS: [-1] * 8}), "belong together"),
        (meta(**{REPLAY_STEPS: [1, 2, 3, 9] * 2}), "belong together"),
        (meta(**{REPLAY_STEPS: [float("nan")] * 8}), "another form"),
        (meta(**{REPLAY_STEPS: {"0": 1}}), "another form"),
        (meta(**{CONTRACT: [2]}), "unknown version"),
        (meta(**{CONTRACT: 1}), "unknown version"),
        (meta(**{RULES: None}), "does not say by which rules"),
        (meta(**{RULES: ["{"]}), "does not say by which rules"),
        (meta(**{RULES: ["[1]"]}), "does not say by which rules"),
        (meta(**{RULES: [rules_text(OTHER)]}), "other rules than are asked for"),
        (meta(finish_reason={"type": "abort", "message": "Abort in waiting queue"}), "gave up"),
        (meta(finish_reason="abort"), "gave up"),
        ({**meta(**{REPLAY_TOKENS: [2, 3, 4, 5], REPLAY_STEPS: [1, 2, 3, 4]}), "output_ids": [2, 3]}, "fewer tokens"),
        ({**meta(**{REPLAY_TOKENS: [], REPLAY_STEPS: []}), "output_ids": []}, "fewer tokens"),
        ({**meta(**{REPLAY_TOKENS: [2, 3, 4, 49, 6, 7, 8, 9]}), "output_ids": [2, 3]}, "holds masks"),
    ],
)
def test_what_is_no_answer_of_sglang_is_an_error(reply, said):
    before = copy.deepcopy(reply)
    with pytest.raises((DataError, SetupError), match=said) as caught:
        read(reply)
    assert caught.value.seen is not None or said == "lacks a part"
    assert caught.value.allowed or caught.value.remedy
    assert reply == before


def test_rules_that_differ_are_named_on_both_sides():
    with pytest.raises(SetupError) as caught:
        read(meta(**{RULES: [rules_text(OTHER)]}))
    assert (caught.value.seen, caught.value.allowed) == ("threshold = 0.5", "threshold = 0.9")
    longer = DecodeSpec.build("sdar", gen_length=64, block_length=4, cache="block", policy="threshold", threshold=0.9)
    sampled = DecodeSpec.build(
        "sdar", gen_length=8, block_length=4, cache="block", policy="threshold", threshold=0.9, temperature=1.0, top_k=5
    )
    assert rules_text(longer) == rules_text(sampled) == rules_text(SPEC)


@pytest.mark.parametrize(
    ("held", "kind"),
    [([[0.5, float("nan")]], "other values"), ([[0.5]], "other values"), ([], "other values"), (None, "other values")],
)
def test_a_weight_that_is_no_number_is_no_match(held, kind):
    class Calls:
        def do(self, name, /, **arguments):
            return held

    with pytest.raises(SetupError, match=kind):
        SGLangDecoder(Calls(), ENDS).verify("w", [0.5, 0.25])


LM = DecodeSpec.build(
    "sdar", gen_length=4, block_length=4, cache="block", policy="threshold", threshold=0.9, dtype="bfloat16"
)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"output_ids": [2, 3, 4, 5], "meta_info": None}, "another form"),
        ({"output_ids": [2, 3, 4, 5], "meta_info": {"finish_reason": {"type": "error"}}}, "gave up"),
        ({"output_ids": [2, 3], "meta_info": {"finish_reason": {"type": "length"}}}, "fewer tokens"),
        ({"output_ids": [2, 3, 4, 99], "meta_info": {"finish_reason": None}}, "outside the vocabulary"),
        ({"output_ids": [2, 3, 4, 49], "meta_info": {"finish_reason": "length"}}, "holds masks"),
        ({"output_ids": None, "meta_info": {}}, "another form"),
        ({"error": "no"}, "answers with an error"),
    ],
)
def test_what_is_no_answer_of_lmdeploy_is_an_error(reply, said, monkeypatch):
    server = Server("http://engine", ENDS)
    monkeypatch.setattr(server.client, "post_all", lambda path, bodies: [reply])
    with pytest.raises((DataError, SetupError), match=said):
        server.generate([[1]], LM, [0], [""])


def chat(content="hi", **more):
    return {"choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (None, "lacks a part"),
        ({}, "lacks a part"),
        ({"error": {"message": "model overloaded"}}, "answers with an error"),
        ({"choices": []}, "lacks a part"),
        ({"choices": None}, "lacks a part"),
        ({"choices": ["hi"]}, "another form"),
        ({"choices": [{"text": "hi"}]}, "lacks a part"),
        ({"choices": [{"message": None}]}, "lacks a part"),
        ({"choices": chat()["choices"] * 2}, "another number of answers"),
        (chat(content=["a", "b"]), "another form"),
        (chat(content=5), "another form"),
        (chat(content="half \ud83d"), "no valid text"),
    ],
)
def test_what_is_no_answer_of_an_openai_server_is_an_error(reply, said):
    with pytest.raises(DareError, match=said):
        answer_of(reply, ("message", "content"), 0.1)


@pytest.mark.parametrize("usage", [None, [], "3", {"prompt_tokens": None}, {"completion_tokens": -3}, {}])
def test_a_server_that_counts_nothing_leaves_the_counts_unknown(usage):
    found = answer_of(chat(usage=usage), ("message", "content"), 0.1)
    assert (found.prompt_tokens, found.generated_tokens, found.stop) == (None, None, "eos")


@pytest.mark.parametrize(("content", "text"), [("", ""), (None, ""), ("ü\U0001f600\n", "ü\U0001f600\n")])
def test_an_empty_answer_is_an_answer(content, text):
    assert answer_of(chat(content=content), ("message", "content"), 0.1).text == text
