"""The files beside predictions and results that say with which settings they were made.

``<abbr>.fingerprint`` holds the fingerprint, the settings it is the hash of (so that a mismatch can be explained) and
notes that are no part of it. Needs no OpenCompass: ``dare-eval show`` reads them too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import read_json, write_json

SUFFIX = ".fingerprint"


def digest(settings: Mapping[str, Any]) -> str:
    """Return the fingerprint of ``settings``: 16 hex digits of the SHA-256 of its canonical JSON form."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_sidecar(output: Path, settings: Mapping[str, Any], notes: Mapping[str, Any] | None = None) -> None:
    """Store ``settings`` (and ``notes``, which are not part of the fingerprint) beside the output file ``output``."""
    write_json(sidecar(output), {"fingerprint": digest(settings), "settings": settings, "notes": notes or {}})


def read_sidecar(output: Path) -> dict[str, Any]:
    """Return ``{"fingerprint", "settings", "notes"}`` of ``output``; empty ones when there is none."""
    empty: dict[str, Any] = {"fingerprint": "", "settings": {}, "notes": {}}
    try:
        found = read_json(sidecar(output), "fingerprint")
    except DataError:  # an output of unknown origin: never reused
        return empty
    return {**empty, **found} if isinstance(found, dict) else empty


def sidecar(output: Path) -> Path:
    """Return the path of the fingerprint beside ``output``."""
    return output.with_name(output.name.removesuffix(".json") + SUFFIX)


def differences(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Yield one line per setting that differs: ``model.decoding.threshold: None -> 0.9``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            yield from differences(old.get(key), new.get(key), f"{at}.{key}".lstrip("."))
    elif plain(old) != plain(new):
        yield f"{at}: {_short(old)} -> {_short(new)}"


def plain(value: Any) -> Any:
    """Return a config value as JSON would give it back."""
    return json.loads(json.dumps(value, default=str))


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
