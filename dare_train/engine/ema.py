"""An exponential moving average of the trained weights: what is exported and judged when it is switched on.

Kept in float32 beside the weights and saved with every checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Ema:
    """Moving average of the trainable parameters of one network."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow: dict[str, Tensor] = {name: p.detach().float().clone() for name, p in _trained(network)}

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Move the average by one optimizer step: ``decay`` of the old, the rest of the new."""
        for name, parameter in _trained(network):
            self.shadow[name].lerp_(parameter.detach().float(), 1.0 - self.decay)

    @contextlib.contextmanager
    def applied(self, network: nn.Module) -> Iterator[None]:
        """Put the average in place of the weights for a while."""
        kept = {name: p.detach().clone() for name, p in _trained(network)}
        _write(network, self.shadow)
        try:
            yield
        finally:
            _write(network, kept)


def _trained(network: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in network.named_parameters() if p.requires_grad]


@torch.no_grad()
def _write(network: nn.Module, values: Mapping[str, Any]) -> None:
    for name, parameter in _trained(network):
        parameter.copy_(values[name].to(parameter.dtype))
