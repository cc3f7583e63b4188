"""Weights to a running SGLang server by broadcast: this process is rank 0 of a group whose others are the server's.

    group = WeightGroup(decoder.calls, WeightPeers(address="10.0.0.1", port=29600, ranks=8))
    with decoder.session():
        group.send(named)

``ranks`` are the server's tensor-parallel ranks; its data parallelism must be 1 (the engine's own limit). A call of the
server returns when the tensors have arrived, so it is asked in a thread while this one sends. The group stands beside
the trainer's own, which PyTorch offers in a private function alone; it is the one that SGLang joins with. Tested with
gloo against the wheel's code; not run with nccl.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from dare_eval.engines.buckets import BUCKET_BYTES, buckets
from dare_eval.errors import SetupError

if TYPE_CHECKING:
    from torch import Tensor

GROUP = "dare-weights"


class Calls(Protocol):
    """The part of an engine that is needed here."""

    def do(self, name: str, /, **arguments: Any) -> Any:
        """Call one of the control functions by its name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPeers:
    """Where the group meets."""

    address: str
    """Of this process, as the server reaches it."""
    port: int
    ranks: int = 1
    """Ranks of the server."""
    backend: str = "nccl"
    timeout_s: float = 300.0
    """Longest wait for the others; a server that is gone ends the run by it."""


class WeightGroup:
    """A group of the trainer's first process and all ranks of a server."""

    def __init__(self, calls: Calls, peers: WeightPeers) -> None:
        self.calls, self.pool = calls, ThreadPoolExecutor(max_workers=1)
        asked = self.pool.submit(
            calls.do,
            "init_weights_update_group",
            master_address=peers.address,
            master_port=peers.port,
            rank_offset=1,
            world_size=peers.ranks + 1,
            group_name=GROUP,
            backend=peers.backend,
        )
        with told_by(asked, "group for new weights"):
            self.group = join(peers, 0)

    def send(self, named: Iterable[tuple[str, Tensor]], limit: int = BUCKET_BYTES, *, label: str | None = None) -> None:
        """Broadcast weights bucket by bucket, under their original names; the last one gives them the ``label``.

        Raises ``SetupError`` when a bucket is refused or does not arrive.
        """
        for last, bucket in buckets(named, limit):
            more = {"weight_version": label} if last and label is not None else {}
            asked = self.pool.submit(
                self.calls.do,
                "update_weights_from_distributed",
                **more,
                names=[name for name, _ in bucket],
                dtypes=[str(value.dtype).removeprefix("torch.") for _, value in bucket],
                shapes=[list(value.shape) for _, value in bucket],
                group_name=GROUP,
                flush_cache=last,
            )
            with told_by(asked, f"weights from {bucket[0][0]} on"):
                for _, value in bucket:
                    self.group.broadcast(value.detach().contiguous(), 0).wait()

    def close(self) -> None:
        """Leave the group."""
        from torch.distributed import destroy_process_group

        destroy_process_group(self.group)
        self.pool.shutdown()


@contextlib.contextmanager
def told_by(asked: Future[Any], what: str) -> Iterator[None]:
    """Raise what the server says of its part, also when ours waited for it in vain; ``SetupError`` otherwise."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        if asked.done():
            check_taken(asked.result(), what)
        raise SetupError(
            f"the engine did not come for the {what}",
            seen=str(error)[:300],
            allowed="a free port of this machine that the server reaches (meet), and its tensor-parallel size (ranks)",
            remedy="see the engine's log; or send weights by a shared folder",
        ) from error
    check_taken(asked.result(), what)


def join(peers: WeightPeers, rank: int) -> Any:
    """Return the process group of trainer and server."""
    from torch.distributed import Backend, distributed_c10d
    from torch.distributed.distributed_c10d import GroupName, PrefixStore
    from torch.distributed.rendezvous import rendezvous

    wait, world = timedelta(seconds=peers.timeout_s), peers.ranks + 1
    place = f"tcp://{peers.address}:{peers.port}"
    store, rank, world = next(iter(rendezvous(place, rank, world, timeout=wait)))
    store.set_timeout(wait)
    group, _ = distributed_c10d._new_process_group_helper(
        world, rank, [], Backend(peers.backend), PrefixStore(GROUP, store), group_name=GroupName(GROUP), timeout=wait
    )
    distributed_c10d._world.pg_group_ranks[group] = {one: one for one in range(world)}  # its end looks there
    return group


def check_taken(reply: Any, what: str) -> None:
    """Raise ``SetupError`` when the engine says that it could not."""
    success, message = (
        (reply.get("success"), reply.get("message")) if isinstance(reply, Mapping) else (reply[0], reply[1])
    )
    if not success:
        raise SetupError(f"the engine did not take the {what}", seen=message, remedy="see the engine's log")
