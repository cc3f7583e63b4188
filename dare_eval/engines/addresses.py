"""Addresses of servers, checked before anything is asked of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from dare_eval.errors import UsageError

FORM = "http://HOST:PORT, http://[IPV6]:PORT or https://HOST/PATH"


def check_url(url: Any) -> str:
    """Return ``url`` without its last slashes; raises ``UsageError`` for one that no client can ask.

    A password in it is refused too: addresses are recorded with every run.
    """
    import httpx

    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in url
        httpx.URL(url)
    except (ValueError, TypeError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise UsageError("the server's address is no URL", seen=url, allowed=FORM)
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the server's address holds a name or password, and addresses are recorded",
            seen=f"{parts.scheme}://...@{parts.hostname}",
            allowed=FORM,
            remedy="put the key into an environment variable and name it (key_env)",
        )
    if parts.query or parts.fragment:
        raise UsageError("the server's address goes on after its path", seen=url, allowed=FORM)
    return str(url).rstrip("/")
