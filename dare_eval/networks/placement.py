"""Put the parts of a network on devices: one device, a mapping from module paths, or layers spread over the GPUs.

A mapping's keys are module paths of the checkpoint (``""`` is everything, ``model.layers.3`` one layer); the longest
prefix wins. ``auto`` fills the visible GPUs layer by layer, weighted by their free memory, and means the CPU where
there is none. Hidden states follow their layer; no hooks are installed. A layer is never split.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from dare_eval.errors import UsageError
from dare_eval.networks.network import DiffusionNetwork

DeviceMap = Mapping[str, str | int | torch.device] | str | None


def resolve_device_map(
    network: DiffusionNetwork, device_map: DeviceMap, device: str | torch.device
) -> dict[str, torch.device]:
    """Return module path prefixes with their devices; raises ``UsageError`` for paths that do not exist."""
    if device_map is None:
        return {"": torch.device(device)}
    if isinstance(device_map, str):
        return _spread(network) if device_map == "auto" else {"": torch.device(device_map)}
    paths = {name for name, _ in network.named_modules()}
    for prefix in device_map:
        if prefix not in paths:
            raise UsageError(
                f"device_map names '{prefix}', which is no part of the network",
                seen=prefix,
                allowed=f"module paths such as '', '{network.config.names.layers}.0'",
            )
    places = {prefix: torch.device(place) for prefix, place in device_map.items()}
    for key in network.state_dict():
        device_of(places, key)
    return places


def device_of(places: Mapping[str, torch.device], key: str) -> torch.device:
    """Return the device of the longest prefix of ``key``; raises ``UsageError`` when none covers it."""
    parts = key.split(".")
    for length in range(len(parts), -1, -1):
        prefix = ".".join(parts[:length])
        if prefix in places:
            return places[prefix]
    raise UsageError(
        f"device_map leaves '{key}' without a device", allowed="a prefix for every part; '' covers the rest"
    )


def layer_placement(network: DiffusionNetwork) -> list[torch.device] | None:
    """Return each layer's device and, last, that of norm and head; None when all stand with the embedding."""
    config = network.config
    ends = [config.names.final_norm] if config.tied_head else [config.names.final_norm, config.names.head]
    end_devices = {next(network.at(path).parameters()).device for path in ends}
    if len(end_devices) > 1:
        raise UsageError(
            "device_map puts the final norm and the head on two devices", seen=sorted(map(str, end_devices))
        )
    placement = [*network.layer_devices(), end_devices.pop()]
    return None if set(placement) == {network.device} else placement


def _spread(network: DiffusionNetwork) -> dict[str, torch.device]:
    gpus = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    if not gpus:
        return {"": torch.device("cpu")}
    free = [torch.cuda.mem_get_info(gpu)[0] for gpu in gpus]
    names, layers = network.config.names, network.config.layers
    places = {"": gpus[0], names.final_norm: gpus[-1], names.head: gpus[-1]}
    bounds = [sum(free[: index + 1]) / sum(free) for index in range(len(gpus))]
    for layer in range(layers):
        share = (layer + 0.5) / layers
        places[f"{names.layers}.{layer}"] = gpus[
            next(i for i, bound in enumerate(bounds) if share <= bound or i == len(gpus) - 1)
        ]
    return places
