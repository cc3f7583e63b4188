"""Puts a network on several processes: whole copies whose gradients are averaged, or FSDP2 shards.

Shards are filled from the first process's weights; no other process ever holds the whole network. Layers are
units of their own, the rest (embeddings, final norm, head) is one; under bfloat16 the routers of a mixture of experts
are units too, kept in their own type. Which settings stand for which ZeRO stage is in docs/distributed.md. Splitting
the columns of a row is ``dare_train.engine.sequence``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dare_eval.errors import UsageError
from dare_train.config import ModelSettings, TrainSettings
from dare_train.engine.world import World

Build = Callable[[bool], nn.Module]
"""Makes the network; True leaves it empty on the meta device."""


def place(build: Build, world: World, settings: TrainSettings, device: str) -> nn.Module:
    """Return the network that ``build`` makes, ready to train on ``device``."""
    if world.processes == 1 or settings.strategy == "ddp":
        network = build(False)
        if world.processes > 1 and not network.is_loaded_in_4bit:
            _copy_first(network)
        return network.to(device)
    return _sharded(build, world, settings, device)


def check_strategy(model: ModelSettings, settings: TrainSettings, world: World) -> None:
    """Refuse settings that several processes cannot carry out; raises ``UsageError``."""
    if world.processes == 1:
        return
    if model.quantize and settings.strategy != "ddp":
        raise UsageError(
            "4-bit weights cannot be sharded",
            seen=f"model.quantize = {model.quantize}, train.strategy = {settings.strategy}",
            allowed="ddp",
            remedy="--set train.strategy=ddp",
        )
    if settings.shard_size and world.processes % settings.shard_size:
        raise UsageError(
            "train.shard_size does not divide the number of processes",
            seen=f"shard_size = {settings.shard_size}, {world.processes} processes",
            allowed=f"a divisor of {world.processes}",
        )


def average_gradients(network: nn.Module, world: World, strategy: str) -> None:
    """Average the gradients of whole copies over processes; shards have done so in the backward pass."""
    if world.processes == 1 or strategy != "ddp":
        return
    import torch.distributed as dist

    for parameter in network.parameters():
        if parameter.requires_grad:
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            dist.all_reduce(gradient)
            parameter.grad = gradient / world.processes


def share_gradients(network: Any, *, now: bool) -> None:
    """Let the next backward pass of a sharded network share its gradients, or keep them whole until one that does."""
    if hasattr(network, "set_requires_gradient_sync"):
        network.set_requires_gradient_sync(now)


def whole_state(network: nn.Module, world: World) -> dict[str, Any]:
    """Return all tensors of the network by name, on the CPU of the first process (empty elsewhere)."""
    if world.processes == 1:
        return network.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    return dict(get_model_state_dict(network, options=StateDictOptions(full_state_dict=True, cpu_offload=True)))


def _sharded(build: Build, world: World, settings: TrainSettings, device: str) -> nn.Module:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.fsdp import register_fsdp_forward_method

    network: Any = build(not world.leads)
    full = network.state_dict() if world.leads else {}
    network.to_empty(device="meta")
    _shard_units(network, world, settings, device.split(":")[0])
    network.frees_layers = settings.reshard_after_forward
    _first_buffer_types(network)
    for method in ("body", "head", "beside_head"):
        register_fsdp_forward_method(network, method)
    network.to_empty(device="cpu" if settings.cpu_offload else device)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, cpu_offload=settings.cpu_offload)
    set_model_state_dict(network, full, options=options)
    return network  # type: ignore[no-any-return]


def _shard_units(network: Any, world: World, settings: TrainSettings, kind: str) -> None:
    from torch.distributed.fsdp import (
        CPUOffloadPolicy,
        MixedPrecisionPolicy,
        OffloadPolicy,
        fully_shard,
        register_fsdp_forward_method,
    )

    half = settings.precision == "bf16"
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if half else None
    shared: dict[str, Any] = {
        "mesh": _mesh(world, settings, kind),
        "offload_policy": CPUOffloadPolicy(pin_memory=kind == "cuda") if settings.cpu_offload else OffloadPolicy(),
        "reshard_after_forward": settings.reshard_after_forward,
    }
    for layer in network.layers:
        if half and layer.sparse:
            router = layer.at(network.config.names.router)
            fully_shard(router, mp_policy=MixedPrecisionPolicy(), **shared)
            register_fsdp_forward_method(router, "scores")
        fully_shard(layer, mp_policy=policy or MixedPrecisionPolicy(), **shared)
    # Embeddings and head are used at both ends of a pass: freeing them in between would save nothing.
    shared["reshard_after_forward"] = False
    fully_shard(network, mp_policy=policy or MixedPrecisionPolicy(), **shared)


def _first_buffer_types(network: nn.Module) -> None:
    """Give buffers the types that they have in the first process, which alone has seen the files."""
    import torch.distributed as dist

    types = [{name: buffer.dtype for name, buffer in network.named_buffers()}]
    dist.broadcast_object_list(types, src=0)
    for name, kind in types[0].items():
        parent, _, leaf = name.rpartition(".")
        module = network.get_submodule(parent)
        module._buffers[leaf] = module.get_buffer(leaf).to(kind)


def _mesh(world: World, settings: TrainSettings, kind: str) -> Any:
    """Return the processes in one row, or as copies of a group that shares the weights."""
    from torch.distributed.device_mesh import init_device_mesh

    size = settings.shard_size or world.processes
    if size == world.processes:
        return init_device_mesh(kind, (size,), mesh_dim_names=("shard",))
    return init_device_mesh(kind, (world.processes // size, size), mesh_dim_names=("copy", "shard"))


def _copy_first(network: nn.Module) -> None:
    import torch.distributed as dist

    for tensor in network.state_dict().values():
        dist.broadcast(tensor, src=0)
