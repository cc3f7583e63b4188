"""4-bit loading: the layers' projections become NF4 linear layers of bitsandbytes (extra ``quant``).

Embeddings, norms, routers and the head keep the requested type. Tensors are still read one by one, so the full-width
weights never exist together. A quantised network can be evaluated and adapted (LoRA) but not saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dare_eval.errors import unknown
from dare_eval.networks.layers import Linear
from dare_eval.networks.network import DiffusionNetwork
from dare_eval.networks.optional import optional

MODES = ("4bit",)


def prepare(network: DiffusionNetwork, mode: str, dtype: str) -> set[str]:
    """Replace the projections of ``network`` (on the meta device) and return the keys of their weights.

    Raises ``UsageError`` for an unknown mode and ``SetupError`` when bitsandbytes is missing.
    """
    if mode not in MODES:
        raise unknown("quantisation", mode, MODES)
    bitsandbytes = optional("bitsandbytes", purpose="4-bit loading", extra="quant")
    compute = torch.bfloat16 if dtype == "auto" else getattr(torch, dtype)
    keys: set[str] = set()
    prefix, router = network.config.names.layers, network.config.names.router
    for name, module in list(network.named_modules()):
        if type(module) is not Linear or not name.startswith(f"{prefix}.") or name.endswith(f".{router}"):
            continue
        parent, _, leaf = name.rpartition(".")
        replaced = bitsandbytes.nn.Linear4bit(
            module.in_features,
            module.out_features,
            bias=module.bias is not None,
            compute_dtype=compute,
            quant_type="nf4",
            device="meta",
        )
        setattr(network.get_submodule(parent), leaf, replaced)
        keys.add(f"{name}.weight")
    return keys


def quantise(weight: Tensor, device: torch.device) -> Any:
    """Return ``weight`` as an NF4 parameter on ``device``; bitsandbytes quantises on the move."""
    parameter = optional("bitsandbytes", purpose="4-bit loading", extra="quant").nn.Params4bit(
        weight.contiguous(), requires_grad=False, quant_type="nf4"
    )
    return parameter.to(device)
