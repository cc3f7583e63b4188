"""Cuts data sets into chunks for workers, leaves out the chunks that are done, and spreads the rest.

A part is a data set of its own to OpenCompass, called ``<abbr>_<number>``. Parts of another cut are moved aside; the
items in them stay (``inferencers.item_store``), so cutting differently costs no decoding.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dare_eval.inferencers.item_store import move_aside
from dare_eval.runtime.predictions import part_files, read_entries
from dare_eval.runtime.sidecars import sidecar


@dataclass(frozen=True, slots=True)
class Chunk:
    """A data set, or a part of it, that one worker runs."""

    dataset_cfg: Any
    base: str
    """Abbr of the whole data set."""
    offset: int
    size: int
    test_range: str | None = None
    """Range of the whole data set, before it was cut."""

    @property
    def place(self) -> dict[str, Any]:
        """What the infer task must know to find the rows of the chunk."""
        return {"base": self.base, "offset": self.offset, "test_range": self.test_range}


def cut(dataset_cfg: Any, abbr: str, total: int, parts: int, least: int) -> list[Chunk]:
    """Return the chunks of a data set of ``total`` items: at most ``parts``, of at least ``least`` items each."""
    whole = copy.deepcopy(dataset_cfg)
    whole["abbr"] = abbr
    before = whole["reader_cfg"].get("test_range")
    divisible = before is None or isinstance(before, str)  # a number draws at random: its parts cannot be named
    if parts <= 1 or total <= least or not divisible:
        return [Chunk(whole, abbr, 0, total)]
    size = max(-(-total // parts), least)
    chunks = []
    for number, start in enumerate(range(0, total, size)):
        part = copy.deepcopy(whole)
        part["abbr"] = f"{abbr}_{number}"
        part["reader_cfg"]["test_range"] = f"{before or ''}[{start}:{start + size}]"
        chunks.append(Chunk(part, abbr, start, min(size, total - start), before))
    return chunks


def missing(chunks: list[Chunk], target: Path, total: int) -> list[Chunk]:
    """Return the chunks without predictions; files that fit no chunk are moved aside."""
    if target.exists() and len(read_entries(target).entries) == total:
        return []
    wanted = {f"{chunk.dataset_cfg['abbr']}.json": chunk.size for chunk in chunks}
    done = set()
    for found in [*([target] if target.exists() else []), *part_files(target)]:
        if wanted.get(found.name) == len(read_entries(found).entries):
            done.add(found.stem)
        else:
            move_aside(found)
            move_aside(sidecar(found))
    return [chunk for chunk in chunks if chunk.dataset_cfg["abbr"] not in done]


def buckets(chunks: list[Chunk], workers: int) -> list[list[Chunk]]:
    """Spread chunks over at most ``workers`` buckets, largest first onto the emptiest; each loads the model once."""
    spread: list[list[Chunk]] = [[] for _ in range(max(1, workers))]
    for chunk in sorted(chunks, key=lambda one: -one.size):
        min(spread, key=lambda bucket: sum(one.size for one in bucket)).append(chunk)
    return [bucket for bucket in spread if bucket]
