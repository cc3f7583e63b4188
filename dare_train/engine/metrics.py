"""The training curve: one JSON line per logged step in ``metrics.jsonl``.

Values are means over the steps since the previous line, except ``step``, ``lr`` and ``wall_s``. Reading the file
needs no library of ours. Leaves out the terminal (``dare_train.engine.progress``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dare_eval.records.atomic import write_atomic


class MetricsFile:
    """Appends lines; on resume, lines after the resumed step are dropped so that no step stands twice."""

    def __init__(self, path: Path, *, keep_until: int = 0) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(path) if line["step"] <= keep_until] if path.exists() else []
        write_atomic(path, "".join(_line(item) for item in kept))

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line; it is on disk when this returns."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_line(record))
            stream.flush()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the lines of ``path`` up to a half one (killed writer) or one that is none of ours."""
    found = []
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not isinstance(record, dict) or "step" not in record:
            break
        found.append(record)
    return found


class Window:
    """Collects values between two lines and returns their means."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Add the values of one step."""
        for key, value in values.items():
            self._sums[key] = self._sums.get(key, 0.0) + value
            self._counts[key] = self._counts.get(key, 0) + 1

    def take(self) -> dict[str, float]:
        """Return the means and start anew."""
        means = {key: total / self._counts[key] for key, total in self._sums.items()}
        self.__init__()  # type: ignore[misc]
        return means


def _line(record: Mapping[str, Any]) -> str:
    clean = {key: _finite(value) for key, value in record.items()}
    return json.dumps(clean, separators=(",", ":"), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value
