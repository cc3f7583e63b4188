"""Log-probabilities from hidden states without ever holding all logits.

A vocabulary of 126,000 makes the logits of 2,048 positions a gigabyte, and their softmax and gradient two more. In
chunks of positions only one chunk's logits exist at a time, forward and backward; the values are the same. Torch's
own chunked linear cross entropy does it where it applies (float32, a plain head, torch from 2.13); otherwise each
chunk is recomputed in the backward pass through the network's own head, which serves adapters, sharded and
half-precision heads.

Shape suffixes: X positions, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CHUNK_LOGITS = 2**24
"""Logits that may exist at once when no chunk size is set: 64 MiB in float32."""


def target_logps(network: Any, hidden_XD: Tensor, target_X: Tensor, *, chunk: int | None = None) -> Tensor:
    """Return log p(target) for each hidden state, [X] in at least float32.

    ``chunk`` is the number of positions whose logits exist at once; by default as many as ``CHUNK_LOGITS`` allows,
    and everything at once when that is enough.
    """
    size = chunk or max(16, CHUNK_LOGITS // network.config.vocab_size)
    if len(target_X) <= size:
        return _logps(network, hidden_XD, target_X)
    weight = _plain_weight(network)
    if weight is not None and hidden_XD.dtype == weight.dtype == torch.float32:
        return _torch_chunked(hidden_XD, weight, target_X, size)
    return recomputed_logps(network, hidden_XD, target_X, size)


def recomputed_logps(network: Any, hidden_XD: Tensor, target_X: Tensor, size: int) -> Tensor:
    """Return what ``target_logps`` does, chunk by chunk through ``network.head``, recomputed in the backward pass."""
    pieces = zip(torch.split(hidden_XD, size), torch.split(target_X, size), strict=True)
    return torch.cat([checkpoint(_logps, network, hidden, target, use_reentrant=False) for hidden, target in pieces])


def has_torch_chunks() -> bool:
    """Return whether this torch has a chunked linear cross entropy (from 2.13)."""
    return hasattr(nn, "LinearCrossEntropyOptions")


def _logps(network: Any, hidden_XD: Tensor, target_X: Tensor) -> Tensor:
    return -functional.cross_entropy(network.head(hidden_XD), target_X, reduction="none")


def _torch_chunked(hidden_XD: Tensor, weight_VD: Tensor, target_X: Tensor, size: int) -> Tensor:
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=size)
    return -functional.linear_cross_entropy(hidden_XD, weight_VD, target_X, reduction="none", options=options)


def _plain_weight(network: Any) -> Tensor | None:
    """Return the head's weight when it is one local tensor that no wrapper stands in front of."""
    if not has_torch_chunks() or isinstance(network, FSDPModule):  # shards are whole only inside the network's methods
        return None
    names = network.config.names
    module = network.at(names.embed if network.config.tied_head else names.head)
    weight = getattr(module, "weight", None)
    plain = isinstance(module, nn.Linear | nn.Embedding) and getattr(module, "bias", None) is None
    return weight if plain and type(weight) is nn.Parameter and not module._forward_hooks else None
