"""Reads a Slurm step (``srun``) as torchrun would describe it: rank, number of processes, address of the first.

Nothing is asked of Slurm's own programs: the first host is taken from the compressed node list. Leaves out opening
the process group (``dare_train.engine.world``). No torch here, because every start of ``dare-train`` looks.

    srun dare-train sft --config configs/train/sft_llada_8b.yaml      # see docs/distributed.md
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from dare_eval.errors import SetupError

PORTS = range(20000, 30000)
FIRST = re.compile(r"^(?P<stem>[^\[,]+)(?:\[(?P<range>[^\]]+)\](?P<tail>[^,]*))?")


def adopt_slurm_step() -> None:
    """Set the variables of ``slurm_variables`` in this process, so that torch and this package see one launcher."""
    os.environ.update(slurm_variables(os.environ))


def slurm_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return torch's variables for this task of a Slurm step; none outside of one or under another launcher.

    A batch script without ``srun`` and a step of one task are no reason to wait for others, so they give none.
    ``MASTER_ADDR`` and ``MASTER_PORT`` are kept where they are set. Raises ``SetupError`` when a variable is missing.
    """
    if "WORLD_SIZE" in environ or not {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"} & environ.keys():
        return {}
    tasks = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS", "1")
    if int(tasks) == 1:
        return {}
    return {
        "WORLD_SIZE": tasks,
        "RANK": _needed(environ, "SLURM_PROCID"),
        "LOCAL_RANK": _needed(environ, "SLURM_LOCALID"),
        "MASTER_ADDR": environ.get("MASTER_ADDR") or first_host(_node_list(environ)),
        "MASTER_PORT": environ.get("MASTER_PORT") or str(port_of(environ.get("SLURM_JOB_ID", "0"))),
    }


def first_host(nodes: str) -> str:
    """Return the first host of a compressed node list: 'gpu[03-05,9],cpu1' gives 'gpu03'."""
    found = FIRST.match(nodes.strip())
    if found is None:
        raise SetupError("the node list of the Slurm step cannot be read", seen=nodes, remedy="export MASTER_ADDR")
    number = re.split(r"[-,]", found["range"])[0] if found["range"] else ""
    return found["stem"] + number + (found["tail"] or "")


def port_of(job: str) -> int:
    """Return the port of a job: the same in all its tasks, seldom that of another job on the node."""
    return PORTS[int(job) % len(PORTS)]


def _node_list(environ: Mapping[str, str]) -> str:
    return environ.get("SLURM_STEP_NODELIST") or _needed(environ, "SLURM_JOB_NODELIST")


def _needed(environ: Mapping[str, str], name: str) -> str:
    if name not in environ:
        raise SetupError(
            "the Slurm step does not say all of its place",
            seen=f"{name} is not set",
            remedy="start the processes with srun, or with torchrun (docs/distributed.md)",
        )
    return environ[name]
