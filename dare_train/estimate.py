"""Size, memory and time of a run before any of it is spent, from the network's sizes alone.

The network is built on the meta device. Memory counts what each process holds: parameters, gradients and AdamW's two
moments of what is trained, a reference copy, the average of the weights, the layers that FSDP2 gathers while it works
on them, and what the backward pass keeps. Time counts floating-point operations (2 per parameter and token forward,
2 backward through it, 2 for the gradient of a trained one, 2 for recomputing) plus attention, at the speed of a matrix
product of the run's own width measured here; a network of width 64 takes two to three times as long, because little of
its time is products. Leaves out communication between processes and buffers of libraries.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dare_eval.errors import SetupError
from dare_train.algorithms.common import Demand
from dare_train.config import LoraSettings
from dare_train.setup import torch_dtype
from dare_train.token_loss import CHUNK_LOGITS

if TYPE_CHECKING:
    from dare_train.run import Prepared

GIB = 2**30
PROBE_FLOPS = {"cpu": 4e9, "cuda": 1e12}
"""Size of the matrix product that is timed: milliseconds on either kind of device."""
BATCH_BYTES = 30
"""Ids, noised ids, masks, rates, draws and weights of one token of a step's rows."""
NF4_BYTES = 0.5625
"""Half a byte per weight and a 4-byte scale per 64 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Size, memory and time of a run."""

    parameters: int
    active_parameters: int
    """Parameters that work on one token: of experts only the chosen ones."""
    trained_parameters: int
    row_tokens: float
    """Mean tokens of a row, the clean copy of block objectives included."""
    states_gib: float
    """Parameters, gradients, optimizer moments, reference and average that one process holds."""
    activations_gib: float
    """What one forward keeps for its backward pass."""
    device_gib: float
    """Memory of the device."""
    step_s: float
    total_s: float


def check_fits(prepared: Prepared, algorithm: Any) -> None:
    """Raise ``SetupError`` when a step on the CPU needs far more memory than there is.

    A GPU says so itself; on the CPU the system would end the process without a word. What is estimated to need up to
    twice the memory is tried.
    """
    if prepared.device != "cpu":
        return
    config = prepared.config
    demand = _demand(prepared, algorithm)
    tokens = prepared.rows.row_tokens * (2 if prepared.plan.config.block_length else 1)
    rows = -(-config.train.batch_size // prepared.world.size)
    compute = "bfloat16" if config.train.precision == "bf16" else config.model.dtype
    needed = rows * tokens * BATCH_BYTES + _activation_bytes(prepared, demand, tokens, bytes_of(compute))
    there = device_gib("cpu")
    if needed / GIB > 2 * there:
        raise SetupError(
            "a training step needs more memory than this machine has",
            seen=f"about {needed / GIB:,.0f} GiB for {rows:,} rows of {tokens:,.0f} tokens; {there:,.0f} GiB are here",
            allowed="rows per forward (train.micro_batch_size, by default all of a step) whose activations fit",
            remedy="--set train.micro_batch_size=N (same result), or a smaller train.batch_size",
        )


def estimate(prepared: Prepared, algorithm: Any) -> Estimate:
    """Return the estimate of a prepared run; ``algorithm`` may have a ``demand()``."""
    config, network = prepared.config, prepared.plan.config
    demand = _demand(prepared, algorithm)
    sizes = Sizes.of(network, config.model.lora)
    tokens = prepared.rows.row_tokens * (2 if network.block_length else 1)
    compute = "bfloat16" if config.train.precision == "bf16" else config.model.dtype
    speed = flops_per_s(prepared.device, compute, width=network.width, ffn=network.ffn)
    rows = -(-config.train.batch_size // prepared.world.size)
    step_s = rows * demand.noised * _row_flops(prepared, sizes, demand, tokens) / speed / prepared.world.split
    return Estimate(
        parameters=sizes.all,
        active_parameters=sizes.active,
        trained_parameters=sizes.trained,
        row_tokens=tokens,
        states_gib=_state_bytes(prepared, sizes, demand, bytes_of(compute)) / GIB,
        activations_gib=_activation_bytes(prepared, demand, tokens, bytes_of(compute)) / GIB,
        device_gib=device_gib(prepared.device),
        step_s=step_s,
        total_s=step_s * config.train.max_steps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Parameter counts of a network."""

    all: int
    active: int
    trained: int
    layer: int
    """The largest layer."""
    outside: int
    """Embedding, head and final norm."""

    @classmethod
    def of(cls, network: Any, lora: LoraSettings | None) -> Sizes:
        """Return the counts, adapters included."""
        import torch

        from dare_eval.networks import DiffusionNetwork

        with torch.device("meta"):
            built = DiffusionNetwork(network)
        total = sum(p.numel() for p in built.parameters())
        inside = [sum(p.numel() for p in layer.parameters()) for layer in built.layers]
        adapters = adapter_parameters(built, lora) if lora else 0
        return cls(
            all=total + adapters,
            active=total + adapters - _idle_expert_parameters(network),
            trained=adapters or total,
            layer=max(inside),
            outside=total - sum(inside),
        )


def adapter_parameters(network: Any, lora: LoraSettings) -> int:
    """Return the parameters that ``dare_train.adapters.add_lora`` would add, without adding them."""
    import re

    from torch import nn

    from dare_train.adapters import target_pattern

    wanted = re.compile(target_pattern(network, lora.targets))
    found = [m for n, m in network.named_modules() if isinstance(m, nn.Linear) and wanted.fullmatch(n)]
    return sum(lora.rank * (module.in_features + module.out_features) for module in found)


def flops_per_s(device: str, dtype: str, *, width: int, ffn: int, seconds: float = 0.2) -> float:
    """Return the floating-point operations per second of a product [rows, width] x [width, ffn]."""
    import torch

    rows = int(max(16, min(4096, PROBE_FLOPS[device.split(":")[0]] // (2 * width * ffn))))
    left = torch.ones(rows, width, device=device, dtype=torch_dtype(dtype))
    right = torch.ones(width, ffn, device=device, dtype=torch_dtype(dtype))
    (left @ right).sum().item()
    began_s, count = time.perf_counter(), 0
    while time.perf_counter() - began_s < seconds:
        (left @ right).sum().item()
        count += 1
    return 2.0 * rows * width * ffn * count / (time.perf_counter() - began_s)


def bytes_of(dtype: str) -> int:
    """Return the bytes of one number."""
    return {"float32": 4, "bfloat16": 2, "float64": 8}[dtype]


def device_gib(device: str) -> float:
    """Return the memory of ``device``."""
    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.get_device_properties(device).total_memory / GIB)
    import psutil

    return float(psutil.virtual_memory().total / GIB)


def _demand(prepared: Prepared, algorithm: Any) -> Demand:
    found: Demand = algorithm.demand() if hasattr(algorithm, "demand") else _one_pass(prepared)
    return found


def _one_pass(prepared: Prepared) -> Demand:
    train = prepared.config.train
    share = -(-train.batch_size // prepared.world.size)
    return Demand(at_once=min(train.micro_batch_size or share, share))


def _state_bytes(prepared: Prepared, sizes: Sizes, demand: Demand, compute_bytes: int) -> float:
    model, size = prepared.config.model, bytes_of(prepared.config.model.dtype)
    frozen = sizes.all - sizes.trained
    frozen_bytes = frozen * (NF4_BYTES if model.quantize else size)
    held = frozen_bytes + sizes.trained * size * 4  # itself, its gradient and two moments
    if demand.reference and not model.lora:
        held += sizes.all * size
    if prepared.config.optim.ema_decay:
        held += sizes.trained * 4
    train, processes = prepared.config.train, prepared.world.processes
    if processes == 1 or train.strategy == "ddp":
        return float(held)
    # The next layer is fetched during this one; kept ones stay until the backward pass.
    gathered = sizes.outside + 2 * sizes.layer if train.reshard_after_forward else sizes.all
    return float(held / (train.shard_size or processes) + gathered * compute_bytes)


def _activation_bytes(prepared: Prepared, demand: Demand, tokens: float, compute_bytes: int) -> float:
    network = prepared.plan.config
    per_layer = _kept_values(network)
    kept = network.layers * per_layer
    if prepared.config.train.gradient_checkpointing:
        kept = network.layers * network.width + per_layer
    logits = min(demand.at_once * prepared.rows.answer_tokens * network.vocab_size, CHUNK_LOGITS)
    return float(demand.at_once * tokens / prepared.world.split * kept * compute_bytes + 8 * logits)


def _kept_values(network: Any) -> float:
    """Return the numbers that one layer keeps of one token: inputs of its products, attention, gate and up."""
    ffn = network.ffn if network.moe is None else network.moe.top_k * network.moe.expert_ffn
    heads = (2 * network.heads + 4 * network.kv_heads) * network.head_dim
    return float(6 * network.width + 2 * heads + 4 * ffn)


def _row_flops(prepared: Prepared, sizes: Sizes, demand: Demand, tokens: float) -> float:
    """Return the operations of one noised row: the layers on all tokens, the head on the masked half of the answer."""
    network, train = prepared.plan.config, prepared.config.train
    again = 1 if train.gradient_checkpointing else 0
    passes = demand.plain_passes + 2 + again  # forward, backward to the inputs
    per_parameter = 2 * (passes + (0 if prepared.config.model.lora else 1))
    inside = (sizes.active - sizes.outside) * tokens
    head = network.vocab_size * network.width * prepared.rows.answer_tokens / 2
    length = tokens / demand.parts
    attention = 4 * network.layers * length**2 * demand.parts * network.heads * network.head_dim
    return float(per_parameter * (inside + head) + (passes + 1) * attention)


def _idle_expert_parameters(network: Any) -> int:
    if network.moe is None:
        return 0
    idle = network.moe.experts - network.moe.top_k
    return int(sum(network.moe.sparse_layers) * idle * 3 * network.width * network.moe.expert_ffn)
