"""What ``--dry-run`` prints: size of the network, memory and time of the run, before any of it is spent.

The network is built on the meta device. Memory counts parameters, gradients, AdamW's two moments and what the
backward pass keeps (inputs of each product and the logits of masked answer tokens). Time counts 6 floating-point
operations per parameter and token plus attention, at the speed of a matrix product of the run's own shape measured
here; a network of width 64 takes two to three times as long, because little of its time is products.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from dare_train.setup import torch_dtype
from dare_train.token_loss import CHUNK_LOGITS

if TYPE_CHECKING:
    from dare_train.algorithms.build import Method
    from dare_train.run import Prepared

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Size, memory and time of a run."""

    parameters: int
    active_parameters: int
    """Parameters that work on one token: of experts only the chosen ones."""
    row_tokens: float
    """Mean tokens of a row, the clean copy of block objectives included."""
    states_gib: float
    """Parameters, gradients and optimizer moments."""
    activations_gib: float
    """What one micro-batch keeps for its backward pass."""
    step_s: float
    total_s: float


def estimate(prepared: Prepared) -> Estimate:
    """Return the estimate of a prepared run."""
    import torch

    from dare_eval.networks import DiffusionNetwork

    config, network = prepared.config, prepared.plan.config
    with torch.device("meta"):
        built = DiffusionNetwork(network)
    parameters = sum(p.numel() for p in built.parameters())
    active = parameters - _idle_expert_parameters(network)
    copies = 2 if network.block_length else 1
    tokens = prepared.rows.row_tokens * copies
    rows = -(-config.train.batch_size // prepared.world.size)
    micro = config.train.micro_batch_size or rows
    size = torch.empty((), dtype=torch_dtype(config.model.dtype)).element_size()
    logits = min(micro * prepared.rows.answer_tokens * network.vocab_size, CHUNK_LOGITS)
    speed = flops_per_s(prepared.device, config.model.dtype, shape=(int(micro * tokens), network.width, network.ffn))
    step_s = rows * _row_flops(network, active, tokens) / speed
    return Estimate(
        parameters=parameters,
        active_parameters=active,
        row_tokens=tokens,
        states_gib=4 * size * parameters / GIB,
        activations_gib=(micro * _kept_values(network, tokens) * size + 8 * logits) / GIB,
        step_s=step_s,
        total_s=step_s * config.train.max_steps,
    )


def show_estimate(prepared: Prepared, method: Method, console: Console) -> None:
    """Print the estimate and what was checked."""
    algorithm = method.build(prepared)
    found = estimate(prepared)
    table = Table(title="Checked; nothing was trained", title_justify="left", show_header=False)
    for name, value in (
        (
            "network",
            f"{prepared.plan.config.family}, {found.parameters:,} parameters ({found.active_parameters:,} active)",
        ),
        ("rows", f"{_sources(prepared)}; {found.row_tokens:.0f} tokens on average"),
        ("method", ", ".join(f"{key} {value}" for key, value in algorithm.describe().items() if value is not None)),
        ("memory", f"{found.states_gib:.2f} GiB states + {found.activations_gib:.2f} GiB activations per process"),
        ("time", f"{found.step_s:.2g} s per step, {found.total_s:.3g} s for {prepared.config.train.max_steps} steps"),
    ):
        table.add_row(name, value)
    console.print(table)


def _sources(prepared: Prepared) -> str:
    sources = prepared.rows.record["sources"]
    if isinstance(sources, dict):
        return ", ".join(f"{count:,} of {name}" for name, count in sources.items())
    return "stream of " + ", ".join(sources)


def flops_per_s(device: str, dtype: str, *, shape: tuple[int, int, int], seconds: float = 0.2) -> float:
    """Return the floating-point operations per second of a product of the run's own ``shape`` (tokens, width, ffn).

    At most 4,096 tokens are used.
    """
    import torch

    tokens, width, ffn = min(shape[0], 4096), shape[1], shape[2]
    left = torch.ones(tokens, width, device=device, dtype=torch_dtype(dtype))
    right = torch.ones(width, ffn, device=device, dtype=torch_dtype(dtype))
    (left @ right).sum().item()
    began_s, count = time.perf_counter(), 0
    while time.perf_counter() - began_s < seconds:
        (left @ right).sum().item()
        count += 1
    return 2.0 * tokens * width * ffn * count / (time.perf_counter() - began_s)


def _idle_expert_parameters(network: Any) -> int:
    if network.moe is None:
        return 0
    idle = network.moe.experts - network.moe.top_k
    return int(sum(network.moe.sparse_layers) * idle * 3 * network.width * network.moe.expert_ffn)


def _row_flops(network: Any, active: int, tokens: float) -> float:
    inside = active - network.vocab_size * network.width  # the embedding table is looked up, not multiplied
    return float(6 * inside * tokens + 12 * network.layers * tokens**2 * network.heads * network.head_dim)


def _kept_values(network: Any, tokens: float) -> float:
    ffn = network.ffn if network.moe is None else network.moe.top_k * network.moe.expert_ffn
    heads = (2 * network.heads + 4 * network.kv_heads) * network.head_dim
    return float(tokens * network.layers * (6 * network.width + 2 * heads + 4 * ffn))
