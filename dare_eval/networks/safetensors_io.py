"""Read safetensors files tensor by tensor, straight into the memory they are going to live in.

The format is a length, a JSON header and raw bytes. Reading it here, instead of mapping the file, gives errors that
name file and key, needs no second copy, and leaves no tensor bound to a file that a later save may replace.
Sharded checkpoints are followed through ``model.safetensors.index.json``: a tensor is read from the shard that
``weight_map`` names, and copies of it in other shards are left alone, with a warning.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dare_eval.errors import DataError
from dare_eval.networks.config import read_json

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
REMEDY = "copy or download the file again"
LOG = logging.getLogger(__name__)
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies."""

    file: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    """First byte in the file."""
    size: int
    """Length in bytes."""


def list_tensors(folder: Path) -> dict[str, Entry]:
    """Return every tensor of a checkpoint by key, headers checked against file sizes.

    Raises ``DataError`` for missing, corrupt or truncated files, for an index that names other files than those of its
    folder or tensors that the named shard lacks, and for a tensor it does not list that lies in several shards.
    """
    if not (folder / INDEX).is_file():
        if not (folder / SINGLE).is_file():
            raise DataError("the checkpoint has no weights", seen=folder, allowed=f"{SINGLE} or {INDEX}", remedy=REMEDY)
        return read_header(folder / SINGLE)
    placed = read_json(folder / INDEX).get("weight_map")
    if not isinstance(placed, dict):
        raise DataError(f"{INDEX} has no weight_map", seen=folder / INDEX, remedy=REMEDY)
    for key, name in placed.items():
        _check_name(key, name)
    shards = {name: read_header(folder / name) for name in sorted(set(placed.values()))}
    lost = sorted(key for key, name in placed.items() if key not in shards[name])
    if lost:
        raise DataError(
            f"{INDEX} names tensors that the named shards lack",
            seen=_some([f"{key} ({placed[key]})" for key in lost]),
            remedy=REMEDY,
        )
    entries = {key: shards[name][key] for key, name in placed.items()}
    return entries | _not_listed(placed, shards)


def _check_name(key: str, name: Any) -> None:
    """Refuse what is no name of a file in the checkpoint's own folder."""
    if not isinstance(name, str) or name in ("", "..") or "\0" in name or name != Path(name).name or "\\" in name:
        raise DataError(
            f"{INDEX} names no file for '{key}'",
            seen=repr(name),
            allowed="the name of a shard in the same folder",
            remedy=REMEDY,
        )


def _not_listed(placed: Mapping[str, str], shards: Mapping[str, dict[str, Entry]]) -> dict[str, Entry]:
    """Return the tensors that ``weight_map`` does not list; warn of copies of those that it places elsewhere."""
    found: dict[str, Entry] = {}
    for name, entries in shards.items():
        stray = sorted(key for key in entries if placed.get(key, name) != name)
        if stray:
            LOG.warning(
                "%s holds copies of tensors that %s places in other shards; not read: %s", name, INDEX, _some(stray)
            )
        for key in entries.keys() - placed.keys():
            if key in found:
                raise DataError(
                    f"{INDEX} does not say which shard '{key}' is read from",
                    seen=f"{found[key].file.name}, {name}",
                    allowed="every tensor listed in weight_map",
                    remedy=REMEDY,
                )
            found[key] = entries[key]
    return found


def read_header(path: Path) -> dict[str, Entry]:
    """Return the tensors of one file by key; raises ``DataError`` when header and size do not fit together."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > size - 8:
                raise DataError(f"{path.name} is truncated or no safetensors file", seen=f"{size} bytes", remedy=REMEDY)
            header = json.loads(file.read(length))
    except FileNotFoundError as error:
        raise DataError(f"{path.name} is missing", seen=path, remedy=REMEDY) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} has a corrupt header: {error}", seen=path, remedy=REMEDY) from error
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror}", seen=path, remedy=REMEDY) from error
    if not isinstance(header, dict):
        raise DataError(f"{path.name} has a corrupt header", seen=type(header).__name__, remedy=REMEDY)
    header.pop("__metadata__", None)
    entries = {key: _entry(path, key, described, 8 + length) for key, described in header.items()}
    _check_tiling(path, entries, 8 + length, size)
    return entries


def _check_tiling(path: Path, entries: dict[str, Entry], start: int, size: int) -> None:
    """Refuse tensors that overlap, leave holes, or do not fill the file."""
    reached = start
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].size)):
        if entry.start != reached:
            raise DataError(f"{path.name} has overlapping tensors or holes at '{key}'", seen=path, remedy=REMEDY)
        reached += entry.size
    if reached != size:
        raise DataError(
            f"{path.name} is truncated or has trailing bytes",
            seen=f"{size} bytes",
            allowed=f"{reached} bytes",
            remedy=REMEDY,
        )


def _entry(path: Path, key: str, described: Any, base: int) -> Entry:
    try:
        dtype, shape = DTYPES[described["dtype"]], tuple(int(n) for n in described["shape"])
        start, end = (int(offset) for offset in described["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name} describes '{key}' wrongly", seen=described, remedy=REMEDY) from error
    if end - start != math.prod(shape) * dtype.itemsize or start < 0:
        raise DataError(f"{path.name} has wrong offsets for '{key}'", seen=described, remedy=REMEDY)
    return Entry(path, dtype, shape, base + start, end - start)


def read_tensors(entries: Mapping[str, Entry], *, staged: Collection[str] = ()) -> Iterator[tuple[str, Tensor]]:
    """Yield key and CPU tensor in file order, each byte read once.

    A tensor whose key is in ``staged`` lies in one buffer that the next such tensor overwrites: for tensors that are
    converted or moved at once, so that no memory is left behind for them.
    """
    buffer = torch.empty(max((entries[key].size for key in staged), default=0), dtype=torch.uint8)
    by_file: dict[Path, list[tuple[str, Entry]]] = {}
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].file.name, item[1].start)):
        by_file.setdefault(entry.file, []).append((key, entry))
    for path, items in by_file.items():
        with path.open("rb") as file:
            for key, entry in items:
                raw = buffer[: entry.size] if key in staged else torch.empty(entry.size, dtype=torch.uint8)
                file.seek(entry.start)
                memory: Any = raw.numpy()
                if file.readinto(memory) != entry.size:
                    raise DataError(f"{path.name} ended inside '{key}'", seen=path, remedy=REMEDY)
                yield key, raw.view(entry.dtype).view(entry.shape)


def same_content(left: Entry, right: Entry, *, chunk: int = 2**24) -> bool:
    """Say whether two tensors have the same type, shape and bytes."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    with left.file.open("rb") as one, right.file.open("rb") as two:
        one.seek(left.start)
        two.seek(right.start)
        sizes = [min(chunk, left.size - done) for done in range(0, left.size, chunk)]
        return all(one.read(size) == two.read(size) for size in sizes)


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
