"""Servers that answer in every wrong way, on real sockets: asked again, refused with a remedy, or read as meant."""

from __future__ import annotations

import gzip
import json
import re
import socket

import pytest

from dare_eval.engines.http import HttpClient
from dare_eval.engines.patience import HttpOptions, retry_after_s
from dare_eval.errors import SetupError, UsageError
from tests.engines.raw_server import answering, dripping, reply

GOOD = reply(b'{"ok": 1}')
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def asked(url: str, **options):
    given = {"retries": 2, "backoff_s": 0.0, "timeout_s": 5.0, **options}
    client = HttpClient(url, HttpOptions(**given))
    try:
        return client.post("/generate", {"text": "ümlaut \U0001f600"})
    finally:
        client.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply(gzip.compress(b'{"ok": 1}'), Content_Encoding="gzip"), id="gzip"),
        pytest.param(CHUNKED + b'5\r\n{"ok"\r\n4\r\n: 1}\r\n0\r\n\r\n', id="chunked"),
        pytest.param(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"ok": 1}', id="until the end of the connection"),
        pytest.param(reply(b'\xef\xbb\xbf{"ok": 1}'[3:], Content_Type="text/plain"), id="another content type"),
        pytest.param(reply(b'  {"ok": 1}\n'), id="white space"),
        pytest.param(dripping(b'{"ok": 1}', 0.01), id="slow, but in time"),
    ],
)
def test_a_whole_reply_is_read_however_it_is_packed(answer):
    with answering(answer) as server:
        assert asked(server.url) == {"ok": 1}
        body = json.loads(server.asked[0].partition(b"\r\n\r\n")[2])
        assert body["text"] == "ümlaut \U0001f600"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(b"", "does not answer", id="closed at once"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", "does not answer", id="half a head"),
        pytest.param(reply(b'{"ok": 1}')[:-3], "does not answer", id="half a body"),
        pytest.param(CHUNKED + b'5\r\n{"ok"', "does not answer", id="half a chunk"),
        pytest.param(CHUNKED + b"zz\r\nno", "does not answer", id="no chunk size"),
        pytest.param(b"\x16\x03\x01 not http at all\r\n\r\n", "does not answer", id="another protocol"),
        pytest.param(reply(b"no gzip", Content_Encoding="gzip"), "does not answer", id="broken gzip"),
        pytest.param(reply(gzip.compress(b'{"ok": 1}')[:16], Content_Encoding="gzip"), "JSON", id="half a gzip"),
        pytest.param(reply(b""), "without content", id="no content"),
        pytest.param(reply(b"<html>Log in</html>", Content_Type="text/html"), "not answer in JSON", id="a web page"),
        pytest.param(reply(b'{"ok": '), "not answer in JSON", id="cut JSON"),
        pytest.param(reply(b'\xff\xfe{"ok": 1}'), "not answer in JSON", id="no UTF-8"),
        pytest.param(reply(b"[" * 100000), "not answer in JSON", id="nested without end"),
        pytest.param(reply(b"busy", "503 Service Unavailable"), "status 503: busy", id="overloaded"),
        pytest.param(reply(b"\xff\xff", "500 Internal Server Error"), "status 500", id="an error that is no text"),
        pytest.param(reply(b"slow down", "429 Too Many Requests", Retry_After="0"), "status 429", id="limited"),
    ],
)
def test_a_broken_reply_is_asked_for_again_and_then_a_failure_that_says_what_came(answer, said):
    with answering(answer) as server:
        with pytest.raises(SetupError, match=said) as caught:
            asked(server.url)
        assert len(server.asked) == 3 and "3 attempts" in str(caught.value)
        assert caught.value.remedy and server.url in str(caught.value)
    with answering(answer, answer, GOOD) as server:
        assert asked(server.url) == {"ok": 1}


@pytest.mark.parametrize(
    ("answer", "said", "remedy"),
    [
        (reply(b"", "302 Found", Location="https://login.example/"), "sends its clients elsewhere", "own address"),
        (reply(b"", "307 Temporary Redirect", Location="/v2"), "elsewhere", "url"),
        (reply(b"", "304 Not Modified"), "elsewhere", "url"),
        (reply(b'{"error": "Unauthorized"}', "401 Unauthorized"), "refuses", "key_env"),
        (reply(b"no", "403 Forbidden"), "refuses", "key_env"),
        (reply(b'{"detail": "Not Found"}', "404 Not Found"), "refuses", "root"),
        (reply(b"", "405 Method Not Allowed"), "refuses", "root"),
        (reply(b"", "413 Payload Too Large"), "refuses", "smaller"),
        (reply(b'{"message": "top_k"}', "422 Unprocessable"), "refuses", "settings"),
    ],
)
def test_a_refusal_is_told_at_once_with_what_helps(answer, said, remedy):
    with answering(answer) as server:
        with pytest.raises(UsageError, match=said) as caught:
            asked(server.url)
        assert len(server.asked) == 1 and remedy in caught.value.remedy
        assert re.search(r"status \d{3}", str(caught.value.seen))


def test_a_reply_that_never_ends_is_given_up():
    with answering(dripping(b"[" + b"1," * 200, 0.05)) as server, pytest.raises(SetupError, match="not complete after"):
        asked(server.url, timeout_s=0.3, retries=0)


def test_a_server_is_obeyed_that_says_when_to_come_back():
    waits: list[float] = []
    busy = reply(b"", "429 Too Many Requests", Retry_After="7")
    with answering(busy, busy, GOOD) as server:
        options = HttpOptions(retries=2, backoff_s=0.5, timeout_s=5.0)
        assert HttpClient(server.url, options, sleep=waits.append).post("/x", {}) == {"ok": 1}
    assert waits == [5.0, 5.0]  # never longer than a reply is waited for
    assert retry_after_s("3") == 3.0 and retry_after_s("-1") == retry_after_s("soon") == retry_after_s("nan") == 0.0
    assert retry_after_s("Fri, 31 Dec 9999 23:59:59 GMT") > 0 == retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT")


def test_a_server_on_ipv6_is_reached():
    try:
        with answering(GOOD, family=socket.AF_INET6) as server:
            assert server.url.startswith("http://[::1]:")
            assert asked(server.url + "/") == {"ok": 1}
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_an_address_may_have_a_path_and_slashes_behind_it(end):
    with answering(GOOD) as server:
        assert asked(f"{server.url}/models/one{end}") == {"ok": 1}
        assert server.asked[0].startswith(b"POST /models/one/generate HTTP/1.1")


@pytest.mark.parametrize(
    "url",
    [
        "", None, 5, "localhost:8000", "ftp://h", "http://", "http:///x", "http://h:port", "http://h:0", "http://h:99999",
        "http://[::1", "http://h?x=1", "http://h/#top", "http://name:secret@h", "http://h\n/x", "http://h h/",
    ],
)  # fmt: skip
def test_an_address_that_no_client_can_ask_is_refused_and_no_password_shown(url):
    with pytest.raises(UsageError, match="address") as caught:
        HttpClient(url)
    assert caught.value.allowed and "secret" not in str(caught.value)


def test_a_key_is_read_from_the_environment_and_never_from_a_config(monkeypatch):
    with pytest.raises(UsageError, match="secret"):
        HttpOptions(headers={"Authorization": "Bearer x"})
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(SetupError, match="SOME_KEY is not set"):
        HttpClient("http://h", HttpOptions(key_env="SOME_KEY"))
    monkeypatch.setenv("SOME_KEY", "schlüssel")
    with pytest.raises(SetupError, match="ASCII"):
        HttpClient("http://h", HttpOptions(key_env="SOME_KEY"))
    monkeypatch.setenv("SOME_KEY", " k-1\n")
    with answering(GOOD) as server:
        asked(server.url, key_env="SOME_KEY", headers={"X-Team": "a"})
        assert b"authorization: bearer k-1\r\n" in server.asked[0].lower() and b"x-team: a" in server.asked[0].lower()


@pytest.mark.parametrize(
    "options",
    [
        {"retries": 1.5}, {"retries": True}, {"timeout_s": float("nan")}, {"timeout_s": float("inf")},
        {"timeout_s": "9"}, {"concurrency": 2.5}, {"backoff_s": -1}, {"headers": ["a"]}, {"headers": {"a": 1}},
        {"headers": {"a": "ü"}}, {"key_env": ""}, {"key_env": 3}, {"headers": {"X-Api-Key": "k"}},
    ],
)  # fmt: skip
def test_options_that_no_client_can_keep_are_refused(options):
    with pytest.raises(UsageError):
        HttpOptions(**options)
