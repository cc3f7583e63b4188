"""Whole weights on every process for a while: what lets processes do different numbers of forwards.

An FSDP2 network gathers its weights in each forward, so a process that needs one more forward than the others waits
for them for ever. Dynamic decoding takes as many passes as it takes. Between ``gather`` and ``scatter`` no forward
communicates. Networks that are not sharded pass through untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn
from torch.distributed.fsdp import FSDPModule


def shards(network: nn.Module) -> list[FSDPModule]:
    """Return the sharded parts of ``network``, itself first; none for a whole one."""
    return [module for module in network.modules() if isinstance(module, FSDPModule)]


def gather(network: nn.Module) -> None:
    """Bring whole weights to this process; every process must call it."""
    for part in shards(network):
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()


def scatter(network: nn.Module) -> None:
    """Give back what :func:`gather` brought."""
    for place, part in enumerate(shards(network)):
        part.set_reshard_after_forward(place > 0 and bool(network.frees_layers), recurse=False)
        part.reshard()


@contextlib.contextmanager
def gathered(network: nn.Module) -> Iterator[None]:
    """Hold whole weights on this process for a while; every process must enter and leave together."""
    gather(network)
    try:
        yield
    finally:
        scatter(network)
