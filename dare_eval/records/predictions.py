"""OpenCompass prediction files, read so that a file cut by a crash still gives its whole items.

A prediction file is one JSON object ``{"0": {"origin_prompt", "prediction", "gold"?}, "1": ...}``, possibly in
parts ``<abbr>_0.json``, ``<abbr>_1.json``, ... Upstream reads a half-written one as an exception, or not at all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PART = re.compile(r"(.+)_(\d+)")
_BLANK = re.compile(r"[\s,]*")


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """The whole items of one prediction file."""

    items: dict[str, dict[str, Any]]
    """By upstream's key (the position as text), in file order."""
    problem: str | None
    """Why the file is not whole; None when it is."""


def read_predictions(path: Path) -> PredictionFile:
    """Return the items of ``path``; of a damaged file those that are whole, and what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        return PredictionFile({}, f"cannot be read: {error.strerror}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        return PredictionFile(_salvage(text), f"damaged or half-written: {error}")
    if not isinstance(found, dict):
        return PredictionFile({}, "not an object of predictions")
    items = {key: value for key, value in found.items() if isinstance(value, dict)}
    left = len(found) - len(items)
    return PredictionFile(items, f"{left} entries are not predictions" if left else None)


def prediction_files(folder: Path) -> dict[str, list[Path]]:
    """Return the prediction files of one model's ``folder`` by data set; the parts of one data set in order."""
    stems = {path.stem for path in folder.glob("*.json")}
    found: dict[str, list[tuple[int, Path]]] = {}
    for stem in stems:
        match = _PART.fullmatch(stem)
        base, number = (match[1], int(match[2])) if match else (stem, -1)
        if match is None or base in stems or f"{base}_0" not in stems:  # a data set that is merely called x_1
            base, number = stem, -1
        found.setdefault(base, []).append((number, folder / f"{stem}.json"))
    return {base: [path for _, path in sorted(parts)] for base, parts in sorted(found.items())}


def _salvage(text: str) -> dict[str, dict[str, Any]]:
    decoder, items = json.JSONDecoder(), {}
    position = text.find("{") + 1
    while 0 < position < len(text):
        try:
            start = _skip(text, position)
            key, end = decoder.raw_decode(text, start)
            colon = text.index(":", end)
            value, position = decoder.raw_decode(text, _skip(text, colon + 1))
        except (ValueError, RecursionError):
            break
        if isinstance(key, str) and isinstance(value, dict):
            items[key] = value
    return items


def _skip(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
