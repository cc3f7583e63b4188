"""Small building blocks: a module tree addressed by dotted paths, RMS norm, rotary positions, the gated network.

Norms and rotations are computed in float32 (or float64 for a float64 network) and cast back, whatever the weights'
type. Rotary tables are computed from the positions of each call: nothing here is a buffer that a loader could
leave uninitialised.

Legend: B batch, T query columns, D width, H heads, d head size, r rotary channels, h half of them, X any leading shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dare_eval.networks.products import product


class Branch(nn.Module):
    """A module whose descendants are placed and found by dotted path, so that keys can follow any checkpoint.

    Look-ups walk the tree at each call; a wrapper that replaces a leaf (an adapter, a quantised layer) is seen.
    """

    def place(self, path: str, module: nn.Module) -> None:
        """Register ``module`` at ``path``, creating the branches on the way."""
        *parents, leaf = path.split(".")
        branch: nn.Module = self
        for name in parents:
            if name not in branch._modules:
                branch.add_module(name, Branch())
            branch = branch._modules[name]  # type: ignore[assignment]
        branch.add_module(leaf, module)

    def at(self, path: str) -> nn.Module:
        """Return the module at ``path``."""
        child = self._modules.get(path)
        if child is not None:
            return child
        module: nn.Module = self
        for name in path.split("."):
            module = module._modules[name]  # type: ignore[assignment]
        return module


class Linear(nn.Linear):
    """``nn.Linear`` without initialisation (weights are read or drawn right after) that is fast on few rows."""

    def reset_parameters(self) -> None:
        """Do nothing."""

    def forward(self, hidden_XD: Tensor) -> Tensor:
        """Return ``hidden @ weight.T + bias``."""
        return product(hidden_XD, self.weight, self.bias)


class Embedding(nn.Embedding):
    """``nn.Embedding`` that leaves its table uninitialised."""

    def reset_parameters(self) -> None:
        """Do nothing."""


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last axis with a learned scale."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, hidden_XD: Tensor) -> Tensor:
        """Return the normalised input in its own type."""
        if hidden_XD.dtype is self.weight.dtype and is_wide(hidden_XD):
            return functional.rms_norm(hidden_XD, self.weight.shape, self.weight, self.eps)
        scaled_XD = functional.rms_norm(widen(hidden_XD), self.weight.shape, None, self.eps)
        return self.weight * scaled_XD.to(hidden_XD.dtype)


def widen(values: Tensor) -> Tensor:
    """Return ``values`` in float32, or unchanged when they are already at least that wide."""
    return values if is_wide(values) else values.float()


def is_wide(values: Tensor) -> bool:
    """Return whether ``values`` are float32 or float64."""
    return values.dtype is torch.float32 or values.dtype is torch.float64


def pick_columns(states_BTX: Tensor, columns_BM: Tensor) -> Tensor:
    """Return ``states_BTX`` at some columns of each row, [B, M, ...]; states of one row serve all rows."""
    if len(columns_BM) == 1:
        return states_BTX.index_select(1, columns_BM[0])
    if len(states_BTX) == 1:
        return states_BTX[0][columns_BM]
    return states_BTX[torch.arange(len(columns_BM), device=columns_BM.device)[:, None], columns_BM]


@dataclass(frozen=True, slots=True)
class Rotary:
    """Cosines and signed sines of one call, [B or 1, T, 1, r], shared by all layers."""

    cos_BT1r: Tensor
    turn_BT1r: Tensor
    """-sin for the first half of the channels, +sin for the second: what the swapped halves are multiplied with."""

    @classmethod
    def at(cls, positions_BT: Tensor, rotary_dim: int, theta: float, dtype: torch.dtype) -> Rotary:
        """Return the tables for ``positions_BT``; ``dtype`` is the network's, tables are at least float32."""
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        channels = torch.arange(0, rotary_dim, 2, dtype=wide, device=positions_BT.device)
        inverse_h = 1.0 / theta ** (channels / rotary_dim)
        angles_BT1h = (positions_BT.to(wide)[..., None] * inverse_h).unsqueeze(-2)
        cos_BT1h, sin_BT1h = angles_BT1h.cos(), angles_BT1h.sin()
        return cls(torch.cat((cos_BT1h, cos_BT1h), dim=-1), torch.cat((-sin_BT1h, sin_BT1h), dim=-1))

    def to(self, device: torch.device) -> Rotary:
        """Return the tables on ``device``."""
        if self.cos_BT1r.device == device:
            return self
        return Rotary(self.cos_BT1r.to(device), self.turn_BT1r.to(device))

    def pick(self, columns_BM: Tensor) -> Rotary:
        """Return the tables of some columns of each row, [B, M, 1, r]."""
        return Rotary(pick_columns(self.cos_BT1r, columns_BM), pick_columns(self.turn_BT1r, columns_BM))

    def __call__(self, states_BTHd: Tensor) -> Tensor:
        """Return ``states_BTHd`` with its leading channels rotated (rotate-half convention)."""
        rotary = self.cos_BT1r.shape[-1]
        wide_BTHr = widen(states_BTHd[..., :rotary])
        swapped_BTHr = wide_BTHr.roll(rotary // 2, dims=-1)
        turned_BTHr = (swapped_BTHr * self.turn_BT1r).add_(wide_BTHr * self.cos_BT1r).to(states_BTHd.dtype)
        if rotary == states_BTHd.shape[-1]:
            return turned_BTHr
        return torch.cat((turned_BTHr, states_BTHd[..., rotary:]), dim=-1)


def gated(hidden_XD: Tensor, gate: nn.Module, up: nn.Module, down: nn.Module) -> Tensor:
    """Return the SwiGLU feed-forward output ``down(silu(gate(x)) * up(x))``."""
    result: Tensor = down(functional.silu(gate(hidden_XD)) * up(hidden_XD))
    return result
