"""SQLite stores that can be read and not written: a colleague's, one on a read-only disk, one kept for a paper.

SQLite itself wants to write beside every database it opens in WAL mode; opened as here it does not. Leaves out servers,
whose permissions they tell themselves.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from sqlalchemy import URL

from dare_eval.errors import SetupError

OPTION = "dare_read_only"
"""Execution option of an engine whose store can only be read."""


def only_readable(url: URL) -> Path | None:
    """Return the file behind ``url`` when it is an SQLite store that this user may read and not write."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    path = Path(str(url.database))
    if not path.is_file() or all(os.access(place, os.W_OK) for place in (path, path.parent)):
        return None
    return path


def connect(path: Path) -> sqlite3.Connection:
    """Open ``path`` for reading only.

    While a writer is at work its log stands beside the file and is read too. Without a log the file is whole, and
    ``immutable`` spares SQLite the files that it could not make here.
    """
    log = path.with_name(path.name + "-wal")
    address = path.resolve().as_uri() + ("?mode=ro" if log.exists() else "?mode=ro&immutable=1")
    return sqlite3.connect(address, uri=True, check_same_thread=False)


def refusal(where: str) -> SetupError:
    """Return the error for writing to a store that can only be read."""
    return SetupError(
        "the store can only be read here",
        seen=where,
        remedy="set DARE_DB to a place of yours, then: dare-eval index runs/",
    )
