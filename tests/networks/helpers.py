"""Networks and token ids for the tests, each from an explicit generator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dare_eval.networks import DiffusionNetwork, build_network


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network_of(raw: dict[str, Any], seed: int = 0, **settings: Any) -> DiffusionNetwork:
    """Return a network whose norms, biases and expert biases are random too, so that none can be dropped unseen."""
    source = generator(seed)
    network = build_network(raw, generator=source, **settings)
    with torch.no_grad():
        for key, value in network.state_dict().items():
            if value.ndim == 1:
                centre = 1.0 if "norm" in key or "ln_f" in key else 0.0
                value.copy_((centre + 0.2 * torch.randn(value.shape, generator=source)).to(value.dtype))
    return network.eval()


def ids_of(rows: int, length: int, seed: int = 1, vocab: int = 38) -> Tensor:
    return torch.randint(0, vocab, (rows, length), generator=generator(seed))


def left_padded(rows: int, length: int) -> Tensor:
    """Return keep [B, S]: row r has r padding columns on the left."""
    return torch.arange(length)[None] >= torch.arange(rows)[:, None]
