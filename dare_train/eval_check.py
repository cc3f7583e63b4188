"""Lets OpenCompass plan a follow-up evaluation before the first step, so that it does not fail after the last one.

The plan is the evaluation's own (``opencompass CONFIG --dry-run`` in a process of its own): data sets are read, classes
imported, decode settings checked against the network. A folder with the config and the tokenizer of the network stands
in for the checkpoint that does not exist yet; no weight is read. Costs about ten CPU-seconds. Leaves out what only
decoding can show, such as a device that is too small.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from dare_eval.errors import DareError, DataError, IncompleteError, SetupError, UsageError
from dare_eval.records.atomic import read_json
from dare_train.config import ModelSettings
from dare_train.setup import ModelPlan, plan_here

KINDS: dict[int, type[DareError]] = {kind.exit_code: kind for kind in (UsageError, DataError, SetupError)}
TAIL_LINES = 8
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK")
"""What a launcher of several processes puts into the environment."""


def plan_evaluation(program: Path, config: Path, name: str, model: ModelSettings) -> None:
    """Plan ``config`` with the network of ``model`` in place of ``name``.

    Raises an error of the kind that the evaluation itself would end with. A base checkpoint whose config or tokenizer
    is not on this machine is not planned: only the download can show what it is.
    """
    from dare_eval.networks.paths import variable_names

    plan, _ = plan_here(model)
    if plan.tokenizer is None:
        return
    with tempfile.TemporaryDirectory(prefix="dare-plan-") as scratch:
        place = Path(scratch)
        stand_in = write_stand_in(plan, place / "model")
        command = [str(program), str(config), "-w", str(place / "work"), "--dry-run"]
        environment = {**plain_environment(), variable_names(name)[0]: str(stand_in)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        failures = [read_json(path, "the failure of a pair") for path in sorted(place.glob("work/*/failures/*.json"))]
    if done.returncode:
        raise _refused(config, done.returncode, done.stdout + done.stderr)
    if failures:
        raise _impossible(config, failures)


def write_stand_in(plan: ModelPlan, folder: Path) -> Path:
    """Write what an evaluation reads of a checkpoint before its weights, and return ``folder``."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(plan.config.raw)), encoding="utf-8")
    plan.tokenizer.save_pretrained(str(folder))
    save_file({}, folder / "model.safetensors")
    return folder


def plain_environment() -> dict[str, str]:
    """Return the environment without what a launcher of several processes put there."""
    return {
        key: value for key, value in os.environ.items() if key not in LAUNCHER and not key.startswith("TORCHELASTIC")
    }


def _refused(config: Path, code: int, output: str) -> DareError:
    kind = KINDS.get(code, IncompleteError)
    return kind(
        "the follow-up evaluation cannot run",
        seen=f"{config} (training_steps_run = 0)\n{said(output)}",
        remedy=f"opencompass {config} --dry-run shows the same; repair it, or train without --then-eval",
    )


def _impossible(config: Path, failures: list[dict[str, Any]]) -> DataError:
    lines = [f"{one['model']} on {one['dataset']}: {one['cause']} ({one['seen']})" for one in failures]
    return DataError(
        f"{len(failures)} pairs of the follow-up evaluation cannot run",
        seen="\n".join([f"{config} (training_steps_run = 0)", *lines]),
        remedy=str(failures[0]["remedy"]) or f"opencompass {config} --dry-run shows the same",
    )


def said(output: str) -> str:
    """Return the text of the panels in ``output`` without their frames, or its last lines where there is none."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    framed = [line.strip("│ ").rstrip() for line in lines if line.startswith("│")]
    return "\n".join(framed or lines[-TAIL_LINES:])
