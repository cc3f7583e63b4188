"""Serves the local sandbox over HTTP, to be started inside the container or virtual machine that isolates it.

``python -m dare_eval.scoring.code.http_server --host 0.0.0.0 --port 8010``. ``POST /run`` takes
``{"program": {...}, "limits": {...}}`` and answers a verdict; ``GET /health`` answers once the self-test has passed.
It is no public service: with ``DARE_SANDBOX_TOKEN`` set it asks for that bearer token, and it speaks no TLS.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dare_eval.errors import DareError, UsageError
from dare_eval.scoring.code import selftest
from dare_eval.scoring.code.http_client import TOKEN_VARIABLE
from dare_eval.scoring.code.pool import SandboxPool
from dare_eval.scoring.code.programs import Limits, Program

_MAX_BYTES = 32 * 2**20


class SandboxServer(ThreadingHTTPServer):
    """A server around one pool; raises ``SetupError`` at once when the pool cannot run programs."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], pool: SandboxPool, *, token: str = "") -> None:
        self.pool, self.token = pool, token
        selftest.check(pool.run)
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: SandboxServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/health" else 404, {"status": "ok"} if self.path == "/health" else {})

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if not 0 < size <= _MAX_BYTES:
            self.close_connection = True
            return self._answer(413, {"error": f"a body of 1 to {_MAX_BYTES} bytes"})
        body = self.rfile.read(size)
        if not self._allowed():
            return self._answer(401, {"error": f"wrong bearer token ({TOKEN_VARIABLE})"})
        if self.path != "/run":
            return self._answer(404, {"error": "POST /run"})
        try:
            program, limits = read_request(json.loads(body))
            return self._answer(200, self.server.pool.run(program, limits).to_dict())
        except (TypeError, ValueError, UsageError) as error:
            return self._answer(400, {"error": str(error)})
        except DareError as error:
            return self._answer(503, {"error": str(error)})

    def _allowed(self) -> bool:
        given = self.headers.get("Authorization") or ""
        return not self.server.token or hmac.compare_digest(given, f"Bearer {self.server.token}")

    def _answer(self, code: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        """Log nothing: requests hold generated programs."""


def read_request(given: dict[str, Any]) -> tuple[Program, Limits]:
    """Return program and limits of a request; raises ``TypeError``, ``ValueError`` or ``UsageError``."""
    fields = dict(given["program"]) if isinstance(given, dict) and "program" in given else {}
    for name in ("tests", "setup", "entry_points"):
        fields[name] = tuple(str(part) for part in fields.get(name) or ())
    if not isinstance(fields.get("code"), str):
        raise ValueError("the request has no program.code")
    return Program(**fields), Limits.from_dict(dict(given.get("limits") or {}))


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve the DARE sandbox over HTTP.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--workers", type=int, default=None, help="fork servers (default: one per core)")
    options = parser.parse_args()
    pool = SandboxPool(workers=options.workers)
    with pool, SandboxServer((options.host, options.port), pool, token=os.environ.get(TOKEN_VARIABLE, "")) as server:
        sys.stdout.write(f"serving http://{options.host}:{server.server_port}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
