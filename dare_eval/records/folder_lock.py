"""One command at a time in a run folder: a second one would take the first one's items and failures for its own.

The lock is the kernel's, so it ends with the process that took it, however it ends; forked workers do not keep it.
Scoring and inference of one command share it; a training run holds it from its first look at the folder.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from dare_eval.errors import SetupError, UsageError

NAME = ".lock"
_HELD: dict[Path, int] = {}


def hold(work_dir: Path, *, option: str = "-w") -> None:
    """Take the run folder ``work_dir`` until this process ends; once is enough.

    ``option`` is what names the folder on the command line, for the remedies. Raises ``UsageError`` when another
    process has it and ``SetupError`` when the folder cannot be written.
    """
    place = work_dir.resolve()
    if place in _HELD:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SetupError(
            f"the run folder cannot be written: {error.strerror}",
            seen=place,
            remedy=f"choose another one with {option}",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UsageError(
            "another command works in this run folder",
            seen=place,
            remedy=f"wait for it, or choose another folder with {option}",
        ) from None
    _HELD[place] = handle


def release(work_dir: Path) -> None:
    """Give the run folder back; nothing happens where this process does not have it."""
    handle = _HELD.pop(work_dir.resolve(), None)
    if handle is not None:
        os.close(handle)


def _leave() -> None:
    """Close the handles in a forked process; the lock stays with the one that took it."""
    for handle in _HELD.values():
        os.close(handle)
    _HELD.clear()


os.register_at_fork(after_in_child=_leave)
