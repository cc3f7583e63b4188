"""``stability.json`` in a run's folder: answer stability as measured, for the board and for later reading."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.intervals import Interval
from dare_eval.records.shapes import NUMBER, TEXT, WHOLE, Rules, check_shape
from dare_eval.report.stability import ItemStability, Stability, to_record

NAME, VERSION = "stability.json", 1
_TYPES: Rules = ((("model", "dataset", "source"), TEXT), (("n", "unread"), WHOLE))
_INTERVAL: Rules = ((("value", "low", "high"), NUMBER), (("n",), WHOLE), (("method",), TEXT))


def write_stability(folder: Path, results: Sequence[Stability]) -> Path:
    """Write ``results`` into ``folder``, replacing those of the same model and benchmark, and return the path."""
    kept = {(one.model, one.dataset): one for one in (read_stability(folder) if (folder / NAME).exists() else ())}
    kept |= {(one.model, one.dataset): one for one in results}
    write_json(folder / NAME, {"version": VERSION, "results": [to_record(kept[key]) for key in sorted(kept)]})
    return folder / NAME


def read_stability(folder: Path) -> list[Stability]:
    """Return what :func:`write_stability` wrote; empty without a file; ``DataError`` for a damaged or newer one."""
    path = folder / NAME
    if not path.exists():
        return []
    found = read_json(path, "answer stability")
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise DataError("answer stability of an unknown version", seen=path, remedy="dare-eval stability RUN writes it")
    try:
        return [_result(entry) for entry in found["results"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"answer stability of another shape: {error}", seen=path, remedy="remove it; dare-eval stability RUN"
        ) from None


def _result(entry: dict[str, Any]) -> Stability:
    intervals = {spec.name for spec in dataclasses.fields(Stability) if "Interval" in str(spec.type)}
    check_shape(entry, _TYPES, "answer stability", needed=("model", "dataset", "n"))
    values: dict[str, Any] = dict(entry)
    for key in intervals:
        if entry.get(key):
            check_shape(entry[key], _INTERVAL, f"answer stability, {key}", needed=("value", "low", "high", "n"))
            values[key] = Interval(**entry[key])
    values["items"] = tuple(ItemStability(**one) for one in entry["items"])
    return Stability(**values)
