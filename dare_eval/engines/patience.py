"""How a client of servers behaves: patience, headers, its key; and what a missed attempt leaves behind."""

from __future__ import annotations

import email.utils
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from dare_eval.errors import SetupError, UsageError

LEAST = {"timeout_s": 0.001, "retries": 0, "backoff_s": 0.0, "longest_wait_s": 0.0, "concurrency": 1}
COUNTS = ("retries", "concurrency")
SECRET = ("authorization", "proxy-authorization", "x-api-key", "api-key", "cookie")
"""Headers that a config must not hold: configs are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How patient a client is."""

    timeout_s: float = 600.0
    """Longest wait for one whole reply."""
    retries: int = 6
    """Further attempts after the first."""
    backoff_s: float = 0.5
    """Wait before the second attempt; doubled each time. A server that says when to come back is obeyed."""
    longest_wait_s: float = 30.0
    concurrency: int = 16
    """Requests under way at a time."""
    headers: Mapping[str, str] = field(default_factory=dict)
    key_env: str | None = None
    """Environment variable that holds the server's key."""

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name, bound in LEAST.items():
            value = getattr(self, name)
            kinds = int if name in COUNTS else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not bound <= value < math.inf:
                raise UsageError(
                    f"server setting '{name}' is out of range",
                    seen=repr(value),
                    allowed=f"{'a whole number' if name in COUNTS else 'a number'} >= {bound}",
                )
        _check_headers(self.headers)
        if self.key_env is not None and not (isinstance(self.key_env, str) and self.key_env):
            raise UsageError("key_env is no name of an environment variable", seen=repr(self.key_env))


@dataclass(frozen=True, slots=True)
class Missed:
    """An attempt without a usable answer that may be repeated."""

    seen: str
    what: str = "the server does not answer"
    remedy: str = "start it again and repeat the command: finished items are kept"
    wait_s: float = 0.0
    """What the server asked for."""


def _check_headers(headers: object) -> None:
    if not isinstance(headers, Mapping):
        raise UsageError("server setting 'headers' is no dict", seen=repr(headers), allowed="dict(NAME='value')")
    for name, value in headers.items():
        if str(name).lower() in SECRET:
            raise UsageError(
                f"header '{name}' holds a secret, and configs are recorded",
                allowed="headers that anybody may see",
                remedy="put the key into an environment variable and name it (key_env)",
            )
        if not (isinstance(name, str) and isinstance(value, str) and f"{name}{value}".isascii()):
            raise UsageError("a header is no ASCII text", seen=f"{name}: {value!r}")


def key_header(key_env: str | None) -> dict[str, str]:
    """Return the header with the key that ``key_env`` names; raises ``SetupError`` when it is unset or no key."""
    if key_env is None:
        return {}
    key = os.environ.get(key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise SetupError(
            "the key of the server is missing" if not key else "the key of the server is no ASCII text on one line",
            seen=f"environment variable {key_env}" + ("" if key else " is not set"),
            remedy=f"export {key_env}=...",
        )
    return {"Authorization": f"Bearer {key}"}


def retry_after_s(value: str) -> float:
    """Return the seconds that a Retry-After header asks for (a number or a date); 0 for none or nonsense."""
    try:
        seconds = float(value)
    except ValueError:
        parsed = email.utils.parsedate_tz(value)
        seconds = email.utils.mktime_tz(parsed) - time.time() if parsed else 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
