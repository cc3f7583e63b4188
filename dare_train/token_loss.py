"""Log-probabilities from hidden states without ever holding all logits.

A vocabulary of 126,000 makes the logits of 2,048 positions a gigabyte, and their softmax and gradient two more. In
chunks of positions only one chunk's logits exist at a time, forward and backward; the values are the same. Torch's
own chunked linear cross entropy does it where it applies (float32, a plain head, torch from 2.13); otherwise each
chunk is recomputed in the backward pass through the network's own head, which serves adapters and half-precision
heads. A sharded network does all chunks in one call, because its processes must make the same number of calls; where
processes share columns, each takes its part of the positions.

Shape suffixes: X positions, D width, V vocabulary.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CHUNK_LOGITS = 2**24
"""Logits that may exist at once when no chunk size is set: 64 MiB in float32."""


def target_logps(
    network: Any, hidden_XD: Tensor, target_X: Tensor, *, chunk: int | None = None, temperature: float = 1.0
) -> Tensor:
    """Return log p(target) for each hidden state, [X] in at least float32; ``temperature`` divides the logits.

    ``chunk`` is the number of positions whose logits exist at once; by default as many as ``CHUNK_LOGITS`` allows,
    and everything at once when that is enough.
    """
    size = chunk or max(16, CHUNK_LOGITS // network.config.vocab_size)
    split = getattr(network, "split", None)
    if split is None:
        return _near_head(network, hidden_XD, target_X, size, temperature)
    own_xD, own_x = split.part(hidden_XD[None])[0], split.part(target_X[None])[0]
    logp_x = _near_head(network, own_xD, own_x, size, temperature)
    whole_X: Tensor = split.whole(logp_x[None, :, None], len(target_X))[0, :, 0]
    return whole_X


def _near_head(network: Any, hidden_XD: Tensor, target_X: Tensor, size: int, temperature: float) -> Tensor:
    if not is_sharded(network):
        return chunked_logps(network, hidden_XD, target_X, size, temperature)
    run = partial(chunked_logps, size=size, temperature=temperature)
    found: Tensor = network.beside_head(run, hidden_XD, target_X)
    return found


def is_sharded(network: Any) -> bool:
    """Return whether the weights of ``network`` are spread over processes and whole only inside its methods."""
    return isinstance(network, FSDPModule)


def chunked_logps(network: Any, hidden_XD: Tensor, target_X: Tensor, size: int, temperature: float = 1.0) -> Tensor:
    """Return what ``target_logps`` does in this process, ``size`` positions at a time; the head must be whole."""
    if len(target_X) <= size:
        return _logps(network, hidden_XD, target_X, temperature)
    weight = _plain_weight(network)
    if weight is not None and hidden_XD.dtype == weight.dtype == torch.float32:
        scaled_XD = hidden_XD if temperature == 1.0 else hidden_XD / temperature  # a plain head is linear
        return _torch_chunked(scaled_XD, weight, target_X, size)
    return recomputed_logps(network, hidden_XD, target_X, size, temperature)


def recomputed_logps(network: Any, hidden_XD: Tensor, target_X: Tensor, size: int, temperature: float = 1.0) -> Tensor:
    """Return what ``target_logps`` does, chunk by chunk through ``network.head``, recomputed in the backward pass."""
    pieces = zip(torch.split(hidden_XD, size), torch.split(target_X, size), strict=True)
    parts = [checkpoint(_logps, network, hidden, target, temperature, use_reentrant=False) for hidden, target in pieces]
    return torch.cat(parts)


def has_torch_chunks() -> bool:
    """Return whether this torch has a chunked linear cross entropy (from 2.13)."""
    return hasattr(nn, "LinearCrossEntropyOptions")


def _logps(network: Any, hidden_XD: Tensor, target_X: Tensor, temperature: float) -> Tensor:
    # A sharded network's own ``head`` would gather the weights again at each call.
    head = partial(type(network).head, network) if is_sharded(network) else network.head
    logits_XV = head(hidden_XD)
    scaled_XV = logits_XV if temperature == 1.0 else logits_XV / temperature
    return -functional.cross_entropy(scaled_XV, target_X, reduction="none")


def _torch_chunked(hidden_XD: Tensor, weight_VD: Tensor, target_X: Tensor, size: int) -> Tensor:
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=size)
    return -functional.linear_cross_entropy(hidden_XD, weight_VD, target_X, reduction="none", options=options)


def _plain_weight(network: Any) -> Tensor | None:
    """Return the head's weight when it is one local tensor that no wrapper stands in front of."""
    if not has_torch_chunks():
        return None
    names = network.config.names
    module = network.at(names.embed if network.config.tied_head else names.head)
    weight = getattr(module, "weight", None)
    plain = isinstance(module, nn.Linear | nn.Embedding) and getattr(module, "bias", None) is None
    return weight if plain and type(weight) is nn.Parameter and not module._forward_hooks else None
