"""The text of single tokens, read from a checkpoint's ``tokenizer.json`` without loading a tokenizer.

Serves the trajectory viewer: word-level and byte-level BPE vocabularies, which are those of the families here. Where
the checkpoint is not on this machine the viewer shows the response's words instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError
from dare_eval.records.atomic import read_json
from dare_eval.records.manifest import RunManifest

Piece = Callable[[int], str]


def piece_of(manifest: dict[str, Any] | None, model: str) -> Piece | None:
    """Return what shows one token of ``model`` of a run, or None where its tokenizer is not at hand."""
    entry = RunManifest.from_dict(manifest).model(model) if manifest else None
    for name in (str((entry.config or {}).get("path") or ""), entry.model_id) if entry else ():
        path = _tokenizer_file(name)
        if path is not None:
            return _piece(str(path))
    return None


def _tokenizer_file(name: str) -> Path | None:
    if not name:
        return None
    packaged = Path(str(resources.files("dare_eval"))) / "assets" / name
    for folder in (Path(name), packaged):
        if (folder / "tokenizer.json").is_file():
            return folder / "tokenizer.json"
    return None


@functools.lru_cache(maxsize=4)
def _piece(path: str) -> Piece | None:
    try:
        found = read_json(Path(path), "tokenizer")
        texts = _texts(found)
    except (DareError, AttributeError, TypeError, KeyError):  # another layout: the viewer falls back on words
        return None
    gap = " " if (found.get("model") or {}).get("type") == "WordLevel" else ""
    return lambda token: texts.get(token, f"<{token}>") + gap


def _texts(found: dict[str, Any]) -> dict[int, str]:
    model = found["model"]
    plain = model.get("type") == "WordLevel"
    letters = {} if plain else _byte_letters()
    texts = {token: text if plain else _decode(text, letters) for text, token in model["vocab"].items()}
    return texts | {entry["id"]: entry["content"] for entry in found.get("added_tokens", ())}


def _decode(text: str, letters: dict[str, int]) -> str:
    if any(letter not in letters for letter in text):
        return text.replace("\u2581", " ")  # SentencePiece's space
    return bytes(letters[letter] for letter in text).decode("utf-8", "replace")


def _byte_letters() -> dict[str, int]:
    """Return the byte behind each letter of byte-level BPE: printable ones stand for themselves, others from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in printable}
    for number, byte in enumerate(byte for byte in range(256) if byte not in printable):
        letters[chr(256 + number)] = byte
    return letters
