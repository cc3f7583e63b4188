"""The processes of a run: rank, size and the few sums they share. One process needs no set-up at all.

Under torchrun or Slurm the process group is opened from the environment (gloo on CPU, nccl on GPU). Sharding of
the network is ``dare_train.engine.sharding``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dare_eval.errors import SetupError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class World:
    """This process's place among all of them."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def leads(self) -> bool:
        """True in the process that writes files and talks to the user."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> list[T]:
        """Return this process's part of ``items``: every size-th, starting at the rank."""
        return list(items[self.rank :: self.size])

    def even_share(self, items: Sequence[T]) -> tuple[list[T], int]:
        """Return as many items in every process, and how many of them are this process's own.

        Sharded networks work together in every forward, so all processes must do the same number of them; the
        missing ones repeat an item.
        """
        own = self.share(items)
        size = -(-len(items) // self.size)
        return own + list(items[:1]) * (size - len(own)), len(own)

    def sums(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return ``values`` added up over all processes; all must pass the same keys."""
        if self.size == 1:
            return dict(values)
        import torch
        import torch.distributed as dist

        keys = sorted(values)
        total_K = torch.tensor([float(values[key]) for key in keys], dtype=torch.float64)
        if dist.get_backend() == "nccl":
            total_K = total_K.cuda()
        dist.all_reduce(total_K)
        return dict(zip(keys, total_K.tolist(), strict=True))

    def gather(self, values: Mapping[str, list[float]]) -> dict[str, list[float]]:
        """Return the lists of all processes joined, by rank; all must pass the same keys."""
        if self.size == 1:
            return dict(values)
        import torch.distributed as dist

        parts: list[Mapping[str, list[float]]] = [{} for _ in range(self.size)]
        dist.all_gather_object(parts, dict(values))
        return {key: [value for part in parts for value in part[key]] for key in values}

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            import torch.distributed as dist

            dist.barrier()


def join_world(device: str) -> World:
    """Return the world that the launcher describes; opens the process group when there is more than one process."""
    _read_slurm()
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World()
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))


def _read_slurm() -> None:
    """Take rank and size from the variables of a Slurm step (srun) when no other launcher has set them."""
    step = os.environ.get("SLURM_STEP_NUM_TASKS")
    if "WORLD_SIZE" in os.environ or step is None or int(step) == 1:
        return
    os.environ.setdefault("MASTER_PORT", "29500")
    os.environ["WORLD_SIZE"] = step
    os.environ["RANK"] = os.environ["SLURM_PROCID"]
    os.environ["LOCAL_RANK"] = os.environ["SLURM_LOCALID"]
    if "MASTER_ADDR" not in os.environ:
        raise SetupError(
            "a Slurm step of several tasks needs the address of its first node",
            seen="MASTER_ADDR is not set",
            remedy="export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)",
        )
