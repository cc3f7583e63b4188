"""A sandbox behind an address, for isolation that this machine cannot give: a container, a virtual machine, a cluster.

Same interface and verdicts as the local pool. A server that cannot be reached is a ``SetupError`` after the retries,
never a wrong answer. ``http_server`` is the other side.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import asdict, fields
from typing import Any

from dare_eval.errors import SetupError
from dare_eval.scoring.code.programs import Limits, Program, Verdict

TOKEN_VARIABLE = "DARE_SANDBOX_TOKEN"
_GRACE_S = 30.0
_TRIES, _PAUSE_S = 3, 0.5


class HttpSandbox:
    """Runs programs on the server at ``url``; ``token`` (default: ``DARE_SANDBOX_TOKEN``) is sent as a bearer token."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise SetupError("a sandbox server needs an http(s) address", seen=url)
        self.url = url.rstrip("/")
        self.token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token

    def run(self, program: Program, limits: Limits) -> Verdict:
        """Run one program; raises ``SetupError`` when the server does not answer or refuses."""
        body = json.dumps({"program": asdict(program), "limits": limits.to_dict()}).encode()
        answer = self._post("/run", body, limits.longest_s + _GRACE_S)
        known = {item.name for item in fields(Verdict)}
        try:
            verdict = Verdict(**{name: value for name, value in answer.items() if name in known})
        except TypeError as error:
            raise SetupError("the sandbox server sent something that is no verdict", seen=str(error)) from error
        return Verdict(**{**verdict.to_dict(), "isolation": f"{self.url} ({verdict.isolation})"})

    def _post(self, path: str, body: bytes, seconds: float) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.url + path, body, headers)
        for attempt in range(_TRIES):
            try:
                with urllib.request.urlopen(request, timeout=seconds) as response:
                    answer = json.load(response)
                if isinstance(answer, dict):
                    return answer
                reason = "the answer is no JSON object"
            except urllib.error.HTTPError as error:
                said = error.read(2000).decode("utf-8", "replace")
                if error.code < 500:
                    raise SetupError(f"the sandbox server refused (HTTP {error.code})", seen=said) from error
                reason = f"HTTP {error.code}: {said}"
            except (OSError, ValueError) as error:
                reason = str(error)
            time.sleep(_PAUSE_S * 2**attempt)
        raise SetupError(
            "the sandbox server does not answer",
            seen=f"{self.url}: {reason}",
            remedy="start it, or unset DARE_SANDBOX_URL",
        )
