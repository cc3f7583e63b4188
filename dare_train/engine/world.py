"""The processes of a run: this one's place among them and the few sums they share. One process needs no set-up.

Under torchrun or Slurm the process group is opened from the environment (gloo on CPU, nccl on GPU). Processes that
split the columns of the same rows (sequence parallel) count as one place: ``rank`` and ``size`` are about rows.
Sharding of the network is ``dare_train.engine.sharding``, the exchange of columns ``dare_train.engine.sequence``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dare_eval.errors import UsageError
from dare_train.slurm import adopt_slurm_step

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class World:
    """This process's place among all of them."""

    rank: int = 0
    """Place among those that train on different rows."""
    size: int = 1
    """Number of such places."""
    local_rank: int = 0
    split: int = 1
    """Processes that share the columns of one row; they stand next to each other."""
    column_rank: int = 0
    """Place among those."""

    @property
    def processes(self) -> int:
        """Number of all processes."""
        return self.size * self.split

    @property
    def process(self) -> int:
        """Number of this one among all processes."""
        return self.rank * self.split + self.column_rank

    @property
    def leads(self) -> bool:
        """True in the process that writes files and talks to the user."""
        return self.process == 0

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
        """Return ``values`` added up over processes with different rows; all processes must pass the same keys.

        Of processes that share rows the first one's values count.
        """
        if self.processes == 1:
            return dict(values)
        import torch
        import torch.distributed as dist

        keys = sorted(values)
        mine_K = torch.tensor([float(values[key]) for key in keys], dtype=torch.float64)
        total_K = mine_K if self.column_rank == 0 else torch.zeros_like(mine_K)
        dist.all_reduce(total_K)
        return dict(zip(keys, total_K.tolist(), strict=True))

    def anyone(self, flag: bool) -> bool:
        """Return whether any process says so."""
        if self.processes == 1:
            return flag
        import torch
        import torch.distributed as dist

        count = torch.tensor(int(flag))
        dist.all_reduce(count)
        return bool(count)

    def agreed(self, value: T) -> T:
        """Return what the first of the processes that share rows has; for what may differ, such as a timed verdict."""
        if self.split == 1:
            return value
        import torch.distributed as dist

        from dare_train.engine.sequence import group_of

        held = [value]
        dist.broadcast_object_list(held, src=self.rank * self.split, group=group_of(self))
        return held[0]

    def gather(self, values: Mapping[str, list[float]]) -> dict[str, list[float]]:
        """Return the lists of all processes joined, by rank; all must pass the same keys."""
        if self.processes == 1:
            return dict(values)
        import torch.distributed as dist

        parts: list[Mapping[str, list[float]]] = [{} for _ in range(self.processes)]
        dist.all_gather_object(parts, dict(values))
        return {key: [value for part in parts[:: self.split] for value in part[key]] for key in values}

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.processes > 1:
            import torch.distributed as dist

            dist.barrier()


def join_world(device: str, split: int = 1) -> World:
    """Return the world that the launcher describes; opens the process group when there is more than one process.

    ``split`` processes share the columns of each row. Raises the error of ``plan_world``.
    """
    adopt_slurm_step()
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    world = plan_world(processes, split, int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0")))
    if processes > 1:
        _open(device)
    return world


def plan_world(processes: int, split: int, process: int = 0, local_rank: int = 0) -> World:
    """Return the world of ``processes`` processes; raises ``UsageError`` when ``split`` does not divide them."""
    if processes % split:
        raise UsageError(
            "the number of processes is not a multiple of train.sequence_parallel",
            seen=f"{processes} processes, sequence_parallel = {split}",
            allowed=f"a multiple of {split} processes",
            remedy=f"--nproc {split}" if processes == 1 else f"start {max(processes // split, 1) * split} processes",
        )
    return World(process // split, processes // split, local_rank, split, process % split)


def leave_world() -> None:
    """Close the process group, when there is one."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _open(device: str) -> None:
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
        dist.init_process_group("cpu:gloo,cuda:nccl")  # numbers of the run are summed on the CPU
    else:
        dist.init_process_group("gloo")
