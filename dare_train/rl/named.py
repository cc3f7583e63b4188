"""The trained weights as an engine wants them: whole tensors under their original names, adapters merged in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


def named_weights(network: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield name and whole tensor of every weight, one at a time; every process must go through all of them."""
    layers = dict(network.named_modules())
    for name, tensor in network.state_dict().items():
        if ".lora_" in name:
            continue
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        owner = name.partition(".base_layer.")[0]
        if owner != name:
            whole = whole + _delta(layers[owner]) if name.endswith(".weight") else whole
            name = name.replace(".base_layer.", ".")
        yield name, whole.detach()


@torch.no_grad()
def _delta(layer: Any) -> Tensor:
    found: Tensor = layer.get_delta_weight("default")
    return found
