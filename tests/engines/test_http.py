"""The HTTP client: retries, refusals, broken replies, order."""

from __future__ import annotations

import httpx
import pytest

from dare_eval.engines.http import HttpClient, need
from dare_eval.engines.patience import HttpOptions
from dare_eval.errors import DataError, SetupError, UsageError


def client(handler, **options) -> tuple[HttpClient, list[float]]:
    waits: list[float] = []
    options = {"retries": 3, "backoff_s": 1.0, **options}
    made = HttpClient(
        "http://engine", HttpOptions(**options), transport=httpx.MockTransport(handler), sleep=waits.append
    )
    return made, waits


def test_a_server_that_comes_back_is_waited_for():
    answers = [httpx.ConnectError("refused"), httpx.Response(503), httpx.Response(200, text="{half"), {"ok": 1}]

    def handler(request):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    made, waits = client(handler)
    assert made.post("/generate", {}) == {"ok": 1}
    assert waits == [1.0, 2.0, 4.0]


def test_a_server_that_stays_away_ends_with_what_was_seen():
    made, waits = client(lambda request: httpx.Response(502, text="bad gateway"), longest_wait_s=1.5)
    with pytest.raises(SetupError, match="does not answer") as caught:
        made.post("/generate", {})
    assert "bad gateway" in str(caught.value) and "4 attempts" in str(caught.value)
    assert waits == [1.0, 1.5, 1.5]


def test_a_refusal_is_not_repeated():
    seen = []
    made, _ = client(lambda request: seen.append(1) or httpx.Response(400, text="no such key"))
    with pytest.raises(UsageError, match="refuses"):
        made.post("/generate", {})
    assert len(seen) == 1


def test_replies_keep_the_order_of_the_requests():
    import json
    import time

    def handler(request):
        number = json.loads(request.content)["n"]
        time.sleep(0.02 * (5 - number))
        return httpx.Response(200, json=number)

    made, _ = client(handler, concurrency=5)
    assert made.post_all("/generate", [{"n": n} for n in range(5)]) == list(range(5))


@pytest.mark.parametrize("options", [{"retries": -1}, {"concurrency": 0}, {"timeout_s": 0}, {"backoff_s": "1"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match="out of range"):
        HttpOptions(**options)


def test_an_address_without_scheme_is_refused():
    with pytest.raises(UsageError, match="no URL"):
        HttpClient("localhost:30000")


def test_a_reply_that_lacks_a_part_is_shown():
    assert need({"a": [{"b": 1}]}, "a", 0, "b") == 1
    with pytest.raises(DataError, match="lacks a part") as caught:
        need({"a": []}, "a", 0, "b")
    assert "a/0" in str(caught.value)
