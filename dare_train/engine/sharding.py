"""Puts a network on several processes: whole copies whose gradients are averaged, or FSDP2 shards.

Shards are filled from the first process's weights; no other process ever holds the whole network. Layers are
units of their own, the rest (embeddings, final norm, head) is one. Leaves out splitting a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dare_train.engine.world import World

Build = Callable[[bool], nn.Module]
"""Makes the network; True leaves it empty on the meta device."""


def place(build: Build, world: World, *, strategy: str, device: str, precision: str) -> nn.Module:
    """Return the network that ``build`` makes, ready to train on ``device``."""
    if world.size == 1 or strategy == "ddp":
        network = build(False)
        if world.size > 1:
            _copy_first(network)
        return network.to(device)
    return _sharded(build, world, device, precision)


def average_gradients(network: nn.Module, world: World, strategy: str) -> None:
    """Average the gradients of whole copies over processes; shards have done so in the backward pass."""
    if world.size == 1 or strategy != "ddp":
        return
    import torch.distributed as dist

    for parameter in network.parameters():
        if parameter.requires_grad:
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            dist.all_reduce(gradient)
            parameter.grad = gradient / world.size


def whole_state(network: nn.Module, world: World) -> dict[str, Any]:
    """Return all tensors of the network by name, on the CPU of the first process (empty elsewhere)."""
    if world.size == 1:
        return network.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    return dict(get_model_state_dict(network, options=StateDictOptions(full_state_dict=True, cpu_offload=True)))


def _sharded(build: Build, world: World, device: str, precision: str) -> nn.Module:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    network: Any = build(not world.leads)
    full = network.state_dict() if world.leads else {}
    network.to_empty(device="meta")
    mesh = init_device_mesh(device.split(":")[0], (world.size,))
    policy = MixedPrecisionPolicy()
    if precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in network.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(network, mesh=mesh, mp_policy=policy)
    for method in ("body", "head"):
        register_fsdp_forward_method(network, method)
    network.to_empty(device=device)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(network, full, options=options)
    return network  # type: ignore[no-any-return]


def _copy_first(network: nn.Module) -> None:
    import torch.distributed as dist

    for tensor in network.state_dict().values():
        dist.broadcast(tensor, src=0)
