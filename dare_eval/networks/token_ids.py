"""Find the token ids of a checkpoint: overrides, then config.json, then the tokenizer's files, then the family.

A family's published default counts only when it lies inside the vocabulary, so that a small test model without a
mask token is refused rather than given an id of another vocabulary. Tokenization itself lives elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError

if TYPE_CHECKING:
    from dare_eval.networks.families.base import Family


class TokenFiles:
    """The special tokens that the files beside a config.json declare; every file is optional."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of ``name``, empty when the file is absent or the folder unknown."""
        if self.folder is None or not (self.folder / name).is_file():
            return {}
        try:
            content = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{name} is not valid JSON: {error}", seen=self.folder / name) from error
        return content if isinstance(content, dict) else {}

    @cached_property
    def added(self) -> dict[str, int]:
        """Id of each added token, by its text."""
        declared = self.read("tokenizer_config.json").get("added_tokens_decoder") or {}
        ids = {entry["content"]: int(number) for number, entry in declared.items()}
        if ids:
            return ids
        return {entry["content"]: int(entry["id"]) for entry in self.read("tokenizer.json").get("added_tokens") or []}

    def role(self, key: str) -> int | None:
        """Return the id of the token that tokenizer_config.json gives the role ``key`` (``mask_token``, ...)."""
        token = self.read("tokenizer_config.json").get(key)
        text = token.get("content") if isinstance(token, dict) else token
        return self.added.get(text) if text is not None else None


def find_token_ids(
    raw: Mapping[str, Any], family: Family, folder: Path | None, vocab_size: int, overrides: Mapping[str, int]
) -> dict[str, Any]:
    """Return ``mask_id, pad_id, eos_id, eot_id, bos_id, stop_ids``; an id that nothing names is None."""
    files = TokenFiles(folder)
    generation = files.read("generation_config.json")
    ends = _listed(raw.get("eos_token_id")) + _listed(generation.get("eos_token_id"))
    found: dict[str, Any] = {}
    for role in ("mask", "pad", "eos", "eot", "bos"):
        default = family.token_ids.get(role)
        stated = ends[0] if role == "eos" and ends else raw.get(f"{role}_token_id")
        from_tokenizer = files.role(f"{role}_token")
        if role == "eot":
            from_tokenizer = files.added.get(family.special_tokens.get(role, ""))
        published = default if default is not None and default < vocab_size else None
        # Dream's config.json names another BOS than its tokenizer, and the tokenizer's is the one it was trained with.
        order = (from_tokenizer, published, stated) if role == "bos" else (stated, from_tokenizer, published)
        candidates = (overrides.get(f"{role}_id"), *order)
        found[f"{role}_id"] = next((value for value in candidates if value is not None), None)
    return _complete(found, ends, vocab_size)


def _complete(found: dict[str, Any], ends: list[int], vocab_size: int) -> dict[str, Any]:
    if found["eos_id"] is None:
        found["eos_id"] = found["pad_id"]
    if found["pad_id"] is None:
        found["pad_id"] = found["eos_id"]
    if found["eos_id"] is None:
        raise DataError(
            "neither config.json nor the tokenizer names an EOS token",
            seen="eos_token_id = None, pad_token_id = None",
            remedy="set eos_token_id in config.json",
        )
    stops = dict.fromkeys([found["eos_id"], *ends, found["eot_id"]])
    found["stop_ids"] = tuple(number for number in stops if number is not None)
    for key, value in found.items():
        for number in value if isinstance(value, tuple) else (value,):
            if key != "mask_id" and number is not None and not 0 <= number < vocab_size:
                raise DataError(f"{key} lies outside the vocabulary", seen=number, allowed=f"0 .. {vocab_size - 1}")
    return found


def _listed(value: Any) -> list[int]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
