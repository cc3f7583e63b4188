"""Find the token ids of a checkpoint: overrides, then config.json, then the tokenizer's files, then the family.

A family's published default counts only when it lies inside the vocabulary, so that a small test model without a
mask token is refused rather than given an id of another vocabulary. Tokenization itself lives elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.errors import DataError, UsageError
from dare_eval.networks.config import read_json
from dare_eval.spec.checks import is_integer

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
        return read_json(self.folder / name)

    @cached_property
    def added(self) -> dict[str, int]:
        """Id of each added token, by its text."""
        return self._added("tokenizer_config.json", "added_tokens_decoder") or self._added(
            "tokenizer.json", "added_tokens"
        )

    def _added(self, name: str, key: str) -> dict[str, int]:
        declared: Any = self.read(name).get(key) or []
        try:
            by_id = key == "added_tokens_decoder" and declared
            entries = declared.items() if by_id else [(entry["id"], entry) for entry in declared]
            return {entry["content"]: int(number) for number, entry in entries}
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DataError(
                f"{name} declares its added tokens wrongly",
                seen=f"{key} = {declared!r}"[:300],
                allowed="the content and id of each token",
                remedy=f"restore {name} from the published checkpoint",
            ) from error

    def role(self, key: str) -> int | None:
        """Return the id of the token that tokenizer_config.json gives the role ``key`` (``mask_token``, ...)."""
        token = self.read("tokenizer_config.json").get(key)
        text = token.get("content") if isinstance(token, dict) else token
        if text is not None and not isinstance(text, str):
            raise DataError(
                f"tokenizer_config.json gives no usable {key}",
                seen=repr(token),
                allowed="the text of a token",
                remedy=f"correct {key} in tokenizer_config.json",
            )
        return self.added.get(text) if text is not None else None


def find_token_ids(
    raw: Mapping[str, Any], family: Family, folder: Path | None, vocab_size: int, overrides: Mapping[str, int]
) -> dict[str, Any]:
    """Return ``mask_id, pad_id, eos_id, eot_id, bos_id, stop_ids``; an id that nothing names is None."""
    files = TokenFiles(folder)
    generation = files.read("generation_config.json")
    ends = _stated(raw, "config.json", "eos_token_id") + _stated(generation, "generation_config.json", "eos_token_id")
    for key, value in overrides.items():
        if value is not None and not is_integer(value):
            raise UsageError(f"{key} is no token id", seen=repr(value), allowed="an integer of at least 0")
    found: dict[str, Any] = {}
    for role in ("mask", "pad", "eos", "eot", "bos"):
        default = family.token_ids.get(role)
        # What an override replaces is not looked at, since it may repair just that; all EOS ids end a response.
        given = overrides.get(f"{role}_id") is not None
        own = ends if role == "eos" or given else _stated(raw, "config.json", f"{role}_token_id")
        stated = own[0] if own else None
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


def check_ends(ids: Mapping[str, Any]) -> None:
    """Refuse a mask token that would also end a response: decoding never produces it, so no response could end."""
    if ids["mask_id"] in ids["stop_ids"]:
        raise DataError(
            "the mask token is also a token that ends a response, and decoding never produces the mask token",
            seen=f"mask_token_id = {ids['mask_id']}, tokens that end a response = {list(ids['stop_ids'])}",
            allowed="an eos_token_id and an eot_token_id that differ from mask_token_id",
            remedy="correct eos_token_id in config.json and generation_config.json",
        )


def _stated(content: Mapping[str, Any], file: str, key: str) -> list[int]:
    """Return the ids that ``file`` states under ``key``; only EOS may have several.

    Raises ``UsageError`` for mask and padding, as ``check_token_ids`` does, ``DataError`` for the others.
    """
    value = content.get(key)
    if value is None:
        return []
    several = key == "eos_token_id"
    listed = list(value) if several and isinstance(value, list | tuple) else [value]
    if not listed or not all(is_integer(number) for number in listed):
        kind = UsageError if key in ("mask_token_id", "pad_token_id") else DataError
        raise kind(
            f"{file} gives no usable {key}",
            seen=repr(value)[:300],
            allowed="an integer, or a list of integers" if several else "an integer",
            remedy=f"correct {key} in {file}",
        )
    return listed
