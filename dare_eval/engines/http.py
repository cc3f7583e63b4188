"""One HTTP client for all servers: retries with backoff, requests side by side, errors that say what to do.

A server that is restarted in the middle of a run is waited for; one that stays away ends the run with a
``SetupError``, after which the same command resumes. A refusal (status 4xx) is not repeated: it would be refused
again. Leaves out streaming.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError, SetupError, UsageError

if TYPE_CHECKING:
    import httpx

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that may be gone at the next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How patient a client is."""

    timeout_s: float = 600.0
    """Longest wait for one reply."""
    retries: int = 6
    """Further attempts after the first."""
    backoff_s: float = 0.5
    """Wait before the second attempt; doubled each time."""
    longest_wait_s: float = 30.0
    concurrency: int = 16
    """Requests under way at a time."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        least = {"timeout_s": 0.001, "retries": 0, "backoff_s": 0.0, "longest_wait_s": 0.0, "concurrency": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < bound:
                raise UsageError(f"server setting '{name}' is out of range", seen=value, allowed=f">= {bound}")


class HttpClient:
    """JSON over HTTP to one server."""

    def __init__(
        self,
        url: str,
        options: HttpOptions | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        if not url.startswith(("http://", "https://")):
            raise UsageError("the server's address is no URL", seen=url, allowed="http://HOST:PORT or https://...")
        self.url, self.options, self._sleep = url.rstrip("/"), options or HttpOptions(), sleep
        limits = httpx.Limits(max_connections=self.options.concurrency)
        self._client = httpx.Client(
            timeout=self.options.timeout_s, headers=dict(self.options.headers), transport=transport, limits=limits
        )

    def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON reply to ``payload``; see the module for the errors raised."""
        return self._call("POST", path, payload)

    def get(self, path: str) -> Any:
        """Return the JSON reply to a GET."""
        return self._call("GET", path, None)

    def post_all(self, path: str, payloads: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the replies to ``payloads``, in order; ``concurrency`` of them are under way at a time."""
        with ThreadPoolExecutor(max_workers=min(self.options.concurrency, max(len(payloads), 1))) as pool:
            return list(pool.map(lambda payload: self.post(path, payload), payloads))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _call(self, method: str, path: str, payload: Mapping[str, Any] | None) -> Any:
        seen = ""
        for attempt in range(self.options.retries + 1):
            if attempt:
                self._sleep(min(self.options.backoff_s * 2 ** (attempt - 1), self.options.longest_wait_s))
            reply, seen = self._attempt(method, path, payload)
            if reply is not None:
                return reply[0]
        raise SetupError(
            "the server does not answer",
            seen=f"{self.url}{path}: {seen} ({self.options.retries + 1} attempts)",
            remedy="start it again and repeat the command: finished items are kept",
        )

    def _attempt(self, method: str, path: str, payload: Mapping[str, Any] | None) -> tuple[tuple[Any] | None, str]:
        """Return the reply in a tuple, or None and what was seen when another attempt may help."""
        import httpx

        try:
            response = self._client.request(method, self.url + path, json=payload)
        except httpx.TransportError as error:
            return None, f"{type(error).__name__}: {error}"
        if response.status_code in PASSING:
            return None, f"status {response.status_code}: {response.text[:200]}"
        if response.status_code >= 400:
            raise UsageError(
                "the server refuses the request",
                seen=f"{self.url}{path}: status {response.status_code}: {response.text[:500]}",
                remedy="compare the settings with what the server was started with",
            )
        try:
            return (response.json() if response.content else {},), ""
        except json.JSONDecodeError:
            return None, f"a reply that is no JSON: {response.text[:200]!r}"


def need(reply: Any, *path: str | int) -> Any:
    """Return what stands at ``path`` in a reply; raises ``DataError`` naming the missing part."""
    found = reply
    for depth, key in enumerate(path):
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                "the server's reply lacks a part",
                seen=f"{json.dumps(reply, default=str)[:300]}",
                allowed="/".join(map(str, path[: depth + 1])),
                remedy="check the server's kind and version (docs/engines.md)",
            ) from error
    return found
