"""Weights on their way to an engine, some at a time, so that copies never need the memory of a second model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BUCKET_BYTES = 512 * 2**20
"""Weights sent to an engine at a time."""


def buckets(named: Iterable[tuple[str, Tensor]], limit: int) -> Iterable[tuple[bool, list[tuple[str, Tensor]]]]:
    """Split weights into lists of at most ``limit`` bytes (one larger tensor stands alone); marks the last one."""
    bucket: list[tuple[str, Tensor]] = []
    size = 0
    for name, value in named:
        bytes_ = value.numel() * value.element_size()
        if bucket and size + bytes_ > limit:
            yield False, bucket
            bucket, size = [], 0
        bucket.append((name, value))
        size += bytes_
    if bucket:
        yield True, bucket
