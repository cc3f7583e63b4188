"""Counts CUDA devices without initialising CUDA, which would make every later fork unusable."""

from __future__ import annotations

import os
import re
from pathlib import Path


def visible_devices() -> list[str]:
    """Return the names to put into ``CUDA_VISIBLE_DEVICES``: those of this process, else the machine's by number."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        return [name for name in names if not name.startswith("-")]
    return [str(number) for number in range(len(_device_files()))]


def _device_files() -> list[Path]:
    folder = Path("/dev")
    return [path for path in folder.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)] if folder.is_dir() else []
