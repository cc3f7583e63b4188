"""The HTTP sandbox: same verdicts as the local one, and no wrong answer for a server that is away or refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from dare_eval.errors import SetupError
from dare_eval.scoring import score
from dare_eval.scoring.code import Limits, Program, SandboxPool, default_sandbox, http_client, scorer
from dare_eval.scoring.code.http_client import HttpSandbox
from dare_eval.scoring.code.http_server import SandboxServer

pytestmark = pytest.mark.xdist_group("sandbox")

LIMITS = Limits(wall_s=20.0)
CODES = {
    "def f(x):\n    return x + 1": "passed",
    "def f(x):\n    return x": "failed",
    "def f(x):\n    1 / 0": "error:ZeroDivisionError",
    "import os\nos._exit(0)": "exited",
    "def g(x):\n    return x": "missing_entry_point",
}


@pytest.fixture(scope="module")
def server(private_sandbox):
    with SandboxPool(workers=1) as pool, SandboxServer(("127.0.0.1", 0), pool, token="sesame") as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(http_client, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("code", CODES)
def test_verdicts_are_those_of_the_local_sandbox(server, code):
    program = Program(code=code, tests=("assert f(1) == 2",), entry_points=("f",))
    verdict = HttpSandbox(server, token="sesame").run(program, LIMITS)
    assert verdict.status == CODES[code]
    assert verdict.isolation == f"{server} (namespaces)"


def test_scripts_and_limits_travel(server):
    sandbox = HttpSandbox(server, token="sesame")
    assert sandbox.run(Program(code="print(int(input()) + 1)", stdin="4"), LIMITS).output == "5\n"
    assert sandbox.run(Program(code="while True: pass", stdin=""), Limits(wall_s=0.4)).status == "timeout"


def test_the_variable_names_the_server_for_every_score(server, monkeypatch):
    monkeypatch.setenv(scorer.URL_VARIABLE, server)
    monkeypatch.setenv(http_client.TOKEN_VARIABLE, "sesame")
    assert isinstance(default_sandbox(), HttpSandbox)
    found = score("code", "def f(x):\n    return x + 1", ["assert f(1) == 2"])
    assert found.correct
    assert found.detail["isolation"].startswith(server)


def test_a_wrong_token_is_refused(server):
    with pytest.raises(SetupError, match="401"):
        HttpSandbox(server, token="open").run(Program(code="", tests=("f()",)), LIMITS)


BODIES = [
    b"{}", b"[1]", b"no json", b'{"program": {"code": 3}}', b'{"program": {"code": "", "evil": 1}}',
    b'{"program": {"code": ""}, "limits": {"wall": 3}}', b'{"program": {"code": ""}, "limits": {"wall_s": -1}}',
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_malformed_requests_are_answered_400(server, body):
    request = urllib.request.Request(server + "/run", body, {"Authorization": "Bearer sesame"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=30)
    assert caught.value.code == 400
    assert json.load(caught.value)["error"]


def test_health_and_unknown_paths(server):
    with urllib.request.urlopen(server + "/health", timeout=30) as answer:
        assert json.load(answer) == {"status": "ok"}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(server + "/other", timeout=30)


def test_no_server_is_a_setup_error():
    with pytest.raises(SetupError, match="does not answer"):
        HttpSandbox("http://127.0.0.1:9", token="").run(Program(code="", tests=("f()",)), Limits(wall_s=1))
    with pytest.raises(SetupError, match="address"):
        HttpSandbox("file:///etc/passwd")


class Broken(BaseHTTPRequestHandler):
    answers: ClassVar[list[tuple[int, bytes]]] = []

    def do_POST(self):
        code, body = self.answers.pop(0)
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        return


@pytest.fixture
def broken():
    with HTTPServer(("127.0.0.1", 0), Broken) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield HttpSandbox(f"http://127.0.0.1:{made.server_port}", token="")
        made.shutdown()


def test_a_server_error_is_retried(broken):
    Broken.answers = [(503, b"busy"), (200, b"not json"), (200, b'{"status": "failed", "later_field": 1}')]
    assert broken.run(Program(code="", tests=("f()",)), LIMITS).status == "failed"


@pytest.mark.parametrize("answers", [[(503, b"")] * 3, [(200, b"[]")] * 3, [(200, b"{}")], [(400, b"no")]])
def test_a_server_that_gives_no_verdict_is_a_setup_error(broken, answers):
    Broken.answers = list(answers)
    with pytest.raises(SetupError):
        broken.run(Program(code="", tests=("f()",)), LIMITS)


def test_the_command_serves_until_it_is_ended(private_sandbox):
    command = [sys.executable, "-m", "dare_eval.scoring.code.http_server", "--port", "0", "--workers", "1"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as host:
        address = re.search(r"http://\S+", host.stdout.readline())
        verdict = HttpSandbox(address[0], token="").run(Program(code="print(1)", stdin=""), LIMITS)
        host.send_signal(signal.SIGINT)
        assert host.wait(60) == 0
    assert verdict.output == "1\n"
