"""Failures of a run as files, one per model and data set: what the summary shows as panels and the exit code counts.

Every stage writes them (planning, inference, a lost worker, scoring), in whatever process it runs. A failure is
taken back when the pair is planned again.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError
from dare_eval.records.atomic import read_json, write_json

FOLDER = "failures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one model has no complete result on one data set."""

    model: str
    dataset: str
    stage: str
    """``plan``, ``infer``, ``worker`` or ``score``."""
    cause: str
    item: str = ""
    """Position (and id) of the item that failed, where one did."""
    seen: str = ""
    allowed: str = ""
    remedy: str = ""
    log: str = ""
    """Log file of the worker."""
    trace: str = ""
    """Traceback, for the file only."""


def failure_from(error: BaseException, *, model: str, dataset: str, stage: str, log: str = "") -> Failure:
    """Return the failure that ``error`` means for one pair."""
    trace = getattr(error, "trace", "") or "".join(traceback.format_exception(error))
    index = getattr(error, "index", None)
    item = "" if index is None else f"{index} (id {str(getattr(error, 'item_id', ''))[:12]})"
    common: dict[str, Any] = {
        "model": model,
        "dataset": dataset,
        "stage": stage,
        "item": item,
        "log": log,
        "trace": trace,
    }
    if isinstance(error, DareError):
        seen = "" if error.seen is None else str(error.seen)
        return Failure(cause=error.what, seen=seen, allowed=error.allowed, remedy=error.remedy, **common)
    remedy = "read the traceback in the log, repair the cause and run the same command again"
    return Failure(cause=f"{type(error).__name__}: {error}", remedy=remedy, **common)


def record_failure(work_dir: str | Path, failure: Failure) -> None:
    """Write ``failure``; the first failure of a pair stays, later ones are consequences of it.

    On a full disk it goes to the log only: the other tasks go on, and the report counts the pair as missing.
    """
    path = _path(work_dir, failure.model, failure.dataset)
    try:
        if not path.exists():
            write_json(path, dataclasses.asdict(failure))
    except OSError as error:
        logging.getLogger("OpenCompass").error(
            f"{failure.model}/{failure.dataset}: {failure.cause} (not recorded: {error.strerror})"
        )


def take_back(work_dir: str | Path, model: str, dataset: str, *, stages: tuple[str, ...] = ()) -> None:
    """Remove the failure of a pair (only when it belongs to ``stages``, if given): the pair is tried again."""
    path = _path(work_dir, model, dataset)
    if path.exists() and (not stages or read_json(path, "failure record").get("stage") in stages):
        path.unlink()


def failure_of(work_dir: str | Path, model: str, dataset: str) -> Failure | None:
    """Return the failure of a pair, or None."""
    path = _path(work_dir, model, dataset)
    if not path.exists():
        return None
    try:
        return Failure(**read_json(path, "failure record"))
    except TypeError as error:
        raise DataError(
            "failure record of another version", seen=f"{path}: {error}", remedy="remove the file"
        ) from None


def _path(work_dir: str | Path, model: str, dataset: str) -> Path:
    name = re.sub(r"[^\w.+-]", "_", f"{model}__{dataset}")
    return Path(work_dir) / FOLDER / f"{name}.json"
