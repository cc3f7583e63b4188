"""Tracebacks short enough to store with every item."""

from __future__ import annotations

import traceback


def short_trace(error: BaseException, own_file: str) -> str:
    """Return the end of an exception's traceback, without the frames of ``own_file``; at most 2000 characters."""
    shown = traceback.TracebackException(type(error), error, error.__traceback__, limit=-8)
    shown.stack[:] = [frame for frame in shown.stack if frame.filename != own_file]
    return "".join(shown.format(chain=False))[-2000:]
