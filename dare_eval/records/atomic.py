"""Files that are either the old version or the new one, never half of each.

A writer that is killed leaves the previous file intact. Leaves out locking: callers that share one file between
processes hold :func:`locked` around read and write.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError


def write_atomic(path: Path, data: str | bytes) -> None:
    """Replace ``path`` by ``data`` in one step; the folder is made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = data.encode() if isinstance(data, str) else data
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Replace ``path`` by ``value`` as sorted, indented JSON; NaN and infinity are refused (``ValueError``)."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Return the JSON value in ``path``; raises ``DataError`` naming ``what`` when it is missing or cannot be read."""
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{what} is missing", seen=path, remedy="check the folder, or run again") from None
    except OSError as error:
        raise DataError(f"{what} cannot be read: {error.strerror}", seen=path, remedy="check its permissions") from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{what} is not readable JSON: {error}", seen=path, remedy="restore the file or make the run again"
        ) from None


def parse_json(raw: bytes) -> Any:
    """Return the JSON value of ``raw``; ``ValueError`` also for NaN and infinity, which JSON does not have."""
    return json.loads(raw, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock beside ``path`` (``.<name>.lock``); waits for whoever holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
