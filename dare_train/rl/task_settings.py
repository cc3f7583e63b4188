"""What a published model's recipe changes on another task (``--task``); the values are in ``task_settings.yaml``.

dare-train rl --config configs/train/rl/llada_8b/espo.yaml --task countdown --dry-run
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dare_eval.errors import UsageError, unknown
from dare_train.rl.config import RlConfig
from dare_train.rl.defaults import SHIPPED, packaged
from dare_train.settings import load_config, read_yaml


def task_settings(task: str, family: str, algo: str) -> dict[str, Any]:
    """Return the settings of ``task`` by dotted key, the special ones over the general ones.

    A named variant (``espo_countdown``) has constants of its own: it takes those of the task but not its algorithm's.
    Raises ``UsageError`` for a task that has none.
    """
    known = read_yaml(packaged("train", "rl", "task_settings.yaml"))
    if task not in known:
        raise unknown("task with settings of its own", task, known, remedy="data.task and data.train in the config")
    found: dict[str, Any] = {}
    for part in ("every", family, algo, f"{family}/{algo}"):
        found |= known[task].get(part, {})
    return found


def task_overrides(task: str, config: Path | None, overrides: list[str]) -> list[str]:
    """Return ``overrides`` behind those of ``task`` for the recipe ``config``; raises ``UsageError`` for no recipe."""
    from dare_train.setup import plan_here

    if config is None:
        raise UsageError(
            "--task changes a recipe of a published model",
            seen=f"--task {task} without --config",
            remedy="--config configs/train/rl/llada_8b/d1.yaml",
        )
    found = load_config(RlConfig, config, overrides)
    if found.model.base in SHIPPED:
        raise UsageError(
            f"'{found.model.base}' knows one task only",
            seen=f"--task {task}",
            allowed=found.data.task,
            remedy="a config of a published model",
        )
    family = plan_here(found.model)[0].config.family
    chosen = task_settings(task, family, found.algo)
    return [*(f"{key}={json.dumps(value)}" for key, value in chosen.items()), *overrides]
