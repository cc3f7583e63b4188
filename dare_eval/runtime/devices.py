"""Counts CUDA devices without initialising CUDA, which would make every later fork unusable.

Also lets native models that want one GPU run on the CPU of a machine that has none: stock configs are written for
GPUs, and trying them on a laptop should need no edit.
"""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path
from typing import Any

from opencompass.registry import MODELS
from opencompass.utils import get_logger, model_abbr_from_cfg

from dare_eval.errors import SetupError
from dare_eval.runtime.dotted import resolve


def visible_devices() -> list[str]:
    """Return the names to put into ``CUDA_VISIBLE_DEVICES``: those of this process, else the machine's by number."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        return [name for name in names if not name.startswith("-") and name != "NoDevFiles"]
    return [str(number) for number in range(len(_device_files()))]


def _device_files() -> list[Path]:
    folder = Path("/dev")
    return [path for path in folder.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)] if folder.is_dir() else []


def settled(task_cfg: Any, have: int) -> Any:
    """Return a task config whose models want no GPU where there is none and they can do without; else itself.

    The client of a server (``url``) wants none anywhere: the server has them.
    """
    if not any(_is_client(cfg) or (not have and _can_do_without(cfg)) for cfg in task_cfg["models"]):
        return task_cfg
    settled_cfg = copy.deepcopy(task_cfg)
    for cfg in settled_cfg["models"]:
        if _is_client(cfg):
            cfg["run_cfg"]["num_gpus"] = 0
        elif not have and _can_do_without(cfg):
            get_logger().warning(f"{model_abbr_from_cfg(cfg)}: no GPU on this machine, running on the CPU")
            cfg["run_cfg"]["num_gpus"] = 0
    return settled_cfg


def _is_client(model_cfg: Any) -> bool:
    return bool(model_cfg.get("url") and (model_cfg.get("run_cfg") or {}).get("num_gpus"))


def _can_do_without(model_cfg: Any) -> bool:
    if (model_cfg.get("run_cfg") or {}).get("num_gpus") != 1 or model_cfg.get("device", "auto") != "auto":
        return False
    try:
        return bool(getattr(resolve("model", model_cfg["type"], MODELS), "runs_on_cpu", False))
    except SetupError:  # the task reports what is wrong with the class
        return False
