"""AdamW, the learning rate of a step, and clipping.

The learning rate is a function of the step, not an object with state, so that resuming cannot get it wrong.
Decay applies to matrices; norms and biases are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dare_train.config import OptimSettings


def build_optimizer(network: nn.Module, settings: OptimSettings) -> torch.optim.AdamW:
    """Return AdamW over the trainable parameters of ``network``."""
    trained = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, foreach=False)


def learning_rate(step: int, settings: OptimSettings, max_steps: int) -> float:
    """Return the learning rate of optimizer step ``step`` (0-based) of ``max_steps``.

    Rises linearly over the warm-up (the first step already has lr / warmup_steps), then stays, falls linearly or
    along half a cosine to ``min_lr_frac`` of the peak, which it would reach one step after the last.
    """
    if step < settings.warmup_steps:
        return settings.lr * (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, max_steps - settings.warmup_steps)
    if settings.schedule == "constant":
        share = 1.0
    elif settings.schedule == "linear":
        share = 1.0 - min(done, 1.0)
    else:
        share = 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
    return settings.lr * (settings.min_lr_frac + (1.0 - settings.min_lr_frac) * share)


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give every group of ``optimizer`` the learning rate ``lr``."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float | None) -> float:
    """Scale the gradient to norm ``limit`` if it is longer; returns the norm before (float32, over all shards)."""
    norm: Tensor = nn.utils.clip_grad_norm_(list(parameters), math.inf if limit is None else limit)
    full = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return float(full)
