"""Rewards: one scorer for training and evaluation, failures counted and told once, limits that hold, three judges."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from dare_eval.errors import UsageError
from dare_eval.scoring import score
from dare_train.rl.reward_pool import MOST_TOLD, RewardPool
from dare_train.rl.rewards import Answer, JudgePlan

CUSTOM = "tests.rl.judges:raises_on"


def answer(response, **changes):
    values = {"prompt": "3 4 5 = 35", "scorer": "countdown", "reference": {"numbers": [3, 4, 5], "target": 35}}
    return Answer(response=response, **{**values, **changes})


@pytest.fixture
def judged(request):
    """Judge responses by a plan and close the pool."""

    def run(responses, *, workers=1, limit_s=20.0, **plan):
        pool = RewardPool(JudgePlan(**plan), workers=workers, limit_s=limit_s)
        request.addfinalizer(pool.close)
        return pool.submit([answer(text) if isinstance(text, str) else text for text in responses]).result()

    return run


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_verifier_says_what_evaluation_says(judged, workers):
    """C168: the same text is right in training and in evaluation."""
    texts = ["<answer>(3+4)*5 = 35</answer>", "<answer>3+4+5</answer>", "", "nonsense"] * 9
    found = judged(texts, workers=workers)
    expected = [float(score("countdown", text, {"numbers": [3, 4, 5], "target": 35}).correct) for text in texts]
    assert [outcome.reward for outcome in found] == [outcome.exact for outcome in found] == expected
    assert expected[0] == 1.0 and expected[1] == 0.0


@pytest.mark.parametrize("workers", [0, 1])
def test_a_judge_that_raises_leaves_the_sample_unscored_and_is_told_once(judged, caplog, workers):
    """C166: an exception is not a reward of 0."""
    with caplog.at_level(logging.WARNING):
        found = judged(["fine", "boom", "fine", "boom"], workers=workers, kind=CUSTOM)
    assert [outcome.reward for outcome in found] == [0.25, None, 0.25, None]
    assert "ValueError: cannot read this answer" in found[1].error
    assert sum("cannot read this answer" in record.message for record in caplog.records) == 1
    assert judged(["nan"], kind=CUSTOM)[0].reward is None


def test_an_unusable_reference_is_unscored(judged):
    found = judged([answer("3+4", reference={"numbers": "x", "target": 1})])
    assert found[0].reward is None and "reference" in found[0].error


def test_limit_and_death_cost_one_sample(judged):
    began_s = time.monotonic()
    found = judged(["fine", "sleep", "fine", "die", "fine"], kind=CUSTOM, limit_s=1.0)
    assert [outcome.reward for outcome in found] == [0.25, None, 0.25, None, 0.25]
    assert "1 s" in found[1].error and "died" in found[3].error
    assert time.monotonic() - began_s < 60


def test_a_judge_that_cannot_be_made_fails_the_caller(judged):
    for workers in (0, 1):
        with pytest.raises(UsageError, match=r"cannot be made: ValueError: no such model"):
            judged(["fine"], kind="tests.rl.judges:broken_factory", workers=workers)
    with pytest.raises(UsageError, match="makes no function"):
        judged(["fine"], kind="tests.rl.judges:makes_nothing", workers=0)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("http", {}, "missing a required argument: 'url'"),
        ("http", {"url": "http://x", "timeout": 3}, "unexpected keyword argument 'timeout'"),
        ("model", {"path": "x", "lable": 1}, "unexpected keyword argument 'lable'"),
        ("tests.rl.judges:needs_address", {}, "missing a required argument: 'url'"),
        ("tests.rl.test_rewards:CUSTOM", {}, "no factory"),
    ],
)
def test_options_that_a_judge_does_not_take_are_refused_before_the_run(kind, options, said):
    with pytest.raises(UsageError, match=said):
        RewardPool(JudgePlan(kind=kind, options=options))


@pytest.mark.parametrize(
    "what",
    [None, "good", [], {}, float("inf"), float("-inf"), float("nan"), 1e300, -1e12, SystemExit(0), MemoryError()],
    ids=str,
)
def test_what_is_no_usable_number_is_unscored_and_the_verdict_stays(judged, what):
    """A reward of 1e300 would make every advantage of the batch infinite."""
    text = "<answer>(3+4)*5</answer>"
    found = judged([text], kind="tests.rl.judges:says", options={"what": what}, workers=0)
    assert found[0].reward is None and found[0].exact == 1.0 and found[0].error
    assert judged([text], kind="tests.rl.judges:says", options={"what": True}, workers=0)[0].reward == 1.0


@pytest.mark.parametrize("workers", [0, 1])
def test_failures_that_never_repeat_do_not_fill_the_screen(judged, caplog, workers):
    with caplog.at_level(logging.WARNING):
        found = judged(["x"] * 50, kind="tests.rl.judges:never_the_same", workers=workers)
    assert all(outcome.reward is None for outcome in found)
    assert len(caplog.records) == MOST_TOLD + 1 and "only counted" in caplog.records[-1].message


def test_a_judge_of_batches_that_loses_answers_is_asked_for_each(judged, caplog):
    found = judged(["a", "b", "c"], kind="tests.rl.judges:TooFew")
    assert [outcome.reward for outcome in found] == [0.5] * 3
    assert sum("1 scores for 3 samples" in record.message for record in caplog.records) == 1


def test_ctrl_c_is_for_the_run_and_costs_no_verdict(judged):
    """The terminal sends it to a whole process group; the run goes on to the end of its step and needs its verdicts."""
    assert judged(["x"], kind="tests.rl.judges:own_group")[0].reward not in (None, float(os.getpgid(0)))


@pytest.mark.parametrize("kind", ["verifierr", "tests.rl.judges:nothing", "no.such.module:x"])
def test_an_unknown_judge_is_refused_at_once(kind):
    with pytest.raises(UsageError):
        RewardPool(JudgePlan(kind=kind))


class Service(BaseHTTPRequestHandler):
    """Scores by the length of the response; refuses one that says so."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["samples"][0]["response"]
        reply = b"no json" if text == "bad" else json.dumps({"scores": [len(text)]}).encode()
        self.send_response(500 if text == "refuse" else 200)
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args):
        """Stay quiet."""


def test_http_service(judged):
    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"url": f"http://127.0.0.1:{server.server_port}/score", "timeout_s": 5}
    found = judged(["four", "bad", "refuse", "xx"], kind="http", options=options)
    server.shutdown()
    server.server_close()
    assert [outcome.reward for outcome in found] == [4.0, None, None, 2.0]
    assert "answered no score" in found[1].error and "does not answer" in found[2].error


def test_local_reward_model(judged, tmp_path):
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from dare_train.data.tokenizer import build_puzzle_tokenizer

    tokenizer = build_puzzle_tokenizer()
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=1, **shape))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    found = judged(["3 + 4", "5 * 4 * 3", "3 + 4"], kind="model", options={"path": str(tmp_path), "batch_size": 2})
    assert torch.equal(torch.get_rng_state(), before)
    with torch.no_grad():
        alone = model.eval()(**tokenizer("3 4 5 = 35", "3 + 4", return_tensors="pt")).logits
    assert found[0].reward == pytest.approx(float(alone[0, 0]), abs=1e-5)
    assert found[0].reward == pytest.approx(found[2].reward, abs=1e-5) and found[0].reward != found[1].reward
