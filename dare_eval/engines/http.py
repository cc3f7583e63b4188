"""One HTTP client for all servers: retries with backoff, requests side by side, errors that say what to do.

A server that is restarted in the middle of a run is waited for; one that stays away ends the run with a
``SetupError``, after which the same command resumes. A refusal (status 4xx) or a redirection is not repeated: it would
come again. Secrets are named (``key_env``) and never part of an address or a config. Leaves out streaming; addresses
are checked in ``addresses``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from dare_eval.engines.addresses import check_url
from dare_eval.engines.patience import HttpOptions, Missed, key_header, retry_after_s
from dare_eval.errors import DataError, SetupError, UsageError

if TYPE_CHECKING:
    import httpx

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that may be gone at the next attempt."""
CONNECT_S = 30.0
"""Longest wait for a connection: a host that is away does not say so."""
REMEDIES = {
    401: "name the environment variable that holds the server's key (key_env) and set it",
    403: "name the environment variable that holds the server's key (key_env) and set it; a proxy may refuse too",
    404: "give the server's root as url (http://HOST:PORT), and check that it is the kind of server that is meant",
    405: "give the server's root as url (http://HOST:PORT), and check that it is the kind of server that is meant",
    413: "make the request smaller: fewer examples in the prompt",
}
"""What helps against a refusal; other statuses are about the request's settings."""

Payload = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""Body of a request, or a function that makes one for each attempt."""


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

        self.url, self.options, self._sleep = check_url(url), options or HttpOptions(), sleep
        limits = httpx.Limits(max_connections=self.options.concurrency)
        patience = httpx.Timeout(self.options.timeout_s, connect=min(CONNECT_S, self.options.timeout_s))
        headers = {**self.options.headers, **key_header(self.options.key_env)}
        self._client = httpx.Client(timeout=patience, headers=headers, transport=transport, limits=limits)

    def post(self, path: str, payload: Payload, *, empty: bool = False) -> Any:
        """Return the JSON reply to ``payload``; see the module for the errors raised.

        A reply without content counts as cut off unless it may be ``empty``: it is None then.
        """
        return self._call("POST", path, payload, empty)

    def get(self, path: str) -> Any:
        """Return the JSON reply to a GET."""
        return self._call("GET", path, None, False)

    def post_all(self, path: str, payloads: Sequence[Payload]) -> list[Any]:
        """Return the replies to ``payloads``, in order; ``concurrency`` of them are under way at a time."""
        with ThreadPoolExecutor(max_workers=min(self.options.concurrency, max(len(payloads), 1))) as pool:
            return list(pool.map(lambda payload: self.post(path, payload), payloads))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _call(self, method: str, path: str, payload: Payload | None, empty: bool) -> Any:
        missed = Missed("")
        for attempt in range(self.options.retries + 1):
            if attempt:
                wait_s = min(self.options.backoff_s * 2 ** (attempt - 1), self.options.longest_wait_s)
                self._sleep(max(wait_s, min(missed.wait_s, self.options.timeout_s)))
            reply = self._attempt(method, path, payload() if callable(payload) else payload, empty)
            if not isinstance(reply, Missed):
                return reply[0]
            missed = reply
        raise SetupError(
            missed.what,
            seen=f"{self.url}{path}: {missed.seen} ({self.options.retries + 1} attempts)",
            remedy=missed.remedy,
        )

    def _attempt(self, method: str, path: str, payload: Mapping[str, Any] | None, empty: bool) -> tuple[Any] | Missed:
        """Return the reply in a tuple, or what was missed when another attempt may help."""
        import httpx

        try:
            response, content = self._ask(method, path, payload)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise UsageError(
                "the request cannot be sent", seen=f"{self.url}{path}: {error}", remedy="check url, headers and key"
            ) from error
        except httpx.RequestError as error:
            return Missed(f"{type(error).__name__}: {error}")
        text = content[:500].decode(errors="replace")
        if response.status_code in PASSING:
            wait_s = retry_after_s(response.headers.get("retry-after", ""))
            return Missed(f"status {response.status_code}: {text[:200]}", wait_s=wait_s)
        if response.status_code >= 300:
            raise _refusal(f"{self.url}{path}", response, text)
        if not content:
            return (None,) if empty else Missed("a reply without content")
        try:
            return (json.loads(content),)
        except (ValueError, RecursionError):  # no JSON, no text, or nested without end
            return Missed(
                f"a reply that is no JSON: {text[:200]!r}",
                what="the server does not answer in JSON",
                remedy="check that url is the root of the engine's own server (a proxy or a web page answers in HTML)",
            )

    def _ask(self, method: str, path: str, payload: Mapping[str, Any] | None) -> tuple[httpx.Response, bytes]:
        """Return a response and its content; the wait for all of it is limited, however slowly it comes."""
        import httpx

        started, parts = time.monotonic(), []
        with self._client.stream(method, self.url + path, json=payload) as response:
            for part in response.iter_bytes():
                parts.append(part)
                if time.monotonic() - started > self.options.timeout_s:
                    raise httpx.ReadTimeout(f"the reply is not complete after {self.options.timeout_s} s")
        return response, b"".join(parts)


def _refusal(place: str, response: httpx.Response, text: str) -> UsageError:
    status = response.status_code
    if status < 400:
        return UsageError(
            "the server sends its clients elsewhere",
            seen=f"{place}: status {status} to {response.headers.get('location', 'an address it does not name')}",
            allowed="an address that answers itself",
            remedy="set url to the server's own address",
        )
    return UsageError(
        "the server refuses the request",
        seen=f"{place}: status {status}: {text}",
        remedy=REMEDIES.get(status, "compare the settings with what the server was started with"),
    )


def need(reply: Any, *path: str | int) -> Any:
    """Return what stands at ``path`` in a reply; raises ``DataError`` naming the missing part."""
    found = reply
    for depth, key in enumerate(path):
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError) as error:
            raise bad_reply(reply, "lacks a part", "/".join(map(str, path[: depth + 1]))) from error
    return found


def need_mapping(reply: Any, *path: str | int) -> Mapping[str, Any]:
    """Return the object at ``path`` in a reply; raises ``DataError`` when something else stands there."""
    found = need(reply, *path)
    if not isinstance(found, Mapping):
        raise bad_reply(reply, "has another form than its protocol says", f"{'/'.join(map(str, path))}: an object")
    return found


def bad_reply(reply: Any, how: str, allowed: str) -> DataError:
    """Return the error for a reply that is JSON but not what was asked for; an error that it tells is shown."""
    told = reply.get("error") or reply.get("detail") if isinstance(reply, Mapping) else None
    return DataError(
        f"the server's reply {how}" if not told else "the server answers with an error",
        seen=json.dumps(told or reply, default=str)[:300],
        allowed=allowed,
        remedy="check the server's kind and version (docs/engines.md)",
    )
