"""The forward pass of LLaDA as the published modelling and Fast-dLLM code compute it, on the weights of our network.

Keys are cached before rotation, so each pass rotates all keys; norms and rotation run in float32; every layer is
computed for every column passed. Written for ``benchmarks/decode.py``, which compares with it; LLaDA layout only.
"""

# B batch, T columns passed, S columns attended, D width, H heads, h head width.
from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

Past = list[tuple[Tensor, Tensor]]


class PublishedBody:
    """Layers of a LLaDA-layout network in the published order of operations."""

    def __init__(self, network) -> None:
        weights = dict(network.named_parameters())
        self.config = network.config
        self.embedding_VD = weights["model.transformer.wte.weight"]
        self.norm_D, self.head_VD = (weights[f"model.transformer.{name}.weight"] for name in ("ln_f", "ff_out"))
        start = "model.transformer.blocks."
        self.layers = [
            {key.split(".")[4]: weights[key] for key in weights if key.startswith(f"{start}{index}.")}
            for index in range(network.config.layers)
        ]
        half = network.config.head_dim // 2
        inverse_r = 1.0 / network.config.rope_theta ** (torch.arange(half, dtype=torch.float32) / half)
        angle_Sh = torch.outer(torch.arange(4096, dtype=torch.float32), inverse_r).repeat(1, 2)
        self.cos_Sh, self.sin_Sh = angle_Sh.cos(), angle_Sh.sin()

    def __call__(
        self, ids_BT: Tensor, past: Past | None = None, *, columns: slice, mask: Tensor | None = None
    ) -> tuple[Tensor, Past]:
        """Return hidden states [B, T, D] of the columns passed and the keys and values of all columns known after.

        ``past`` of fewer columns than ``columns.start`` + 1 is continued, a longer one overwritten in place.
        """
        hidden_BTD = functional.embedding(ids_BT, self.embedding_VD)
        present: Past = []
        for index, layer in enumerate(self.layers):
            normed_BTD = self._norm(hidden_BTD, layer["attn_norm"])
            query, key, value = (self._heads(functional.linear(normed_BTD, layer[f"{n}_proj"])) for n in "qkv")
            if past is not None:
                key, value = self._join(past[index], key, value, columns)
            present.append((key, value))
            mixed_BHTh = functional.scaled_dot_product_attention(
                self._rotate(query, columns.stop), self._rotate(key, key.shape[2]), value, attn_mask=mask
            )
            hidden_BTD = hidden_BTD + functional.linear(mixed_BHTh.transpose(1, 2).flatten(2), layer["attn_out"])
            normed_BTD = self._norm(hidden_BTD, layer["ff_norm"])
            gate_BTF, up_BTF = (functional.linear(normed_BTD, layer[f"{name}_proj"]) for name in ("ff", "up"))
            hidden_BTD = hidden_BTD + functional.linear(functional.silu(gate_BTF) * up_BTF, layer["ff_out"])
        return self._norm(hidden_BTD, self.norm_D), present

    def head(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits [B, T, V]."""
        return functional.linear(hidden_BTD, self.head_VD)

    def _norm(self, hidden_BTD: Tensor, scale_D: Tensor) -> Tensor:
        wide_BTD = hidden_BTD.float()
        variance_BT1 = wide_BTD.pow(2).mean(-1, keepdim=True)
        return scale_D * (wide_BTD * torch.rsqrt(variance_BT1 + self.config.norm_eps)).to(hidden_BTD.dtype)

    def _heads(self, values_BTD: Tensor) -> Tensor:
        return values_BTD.view(*values_BTD.shape[:2], -1, self.config.head_dim).transpose(1, 2)

    @staticmethod
    def _join(past: tuple[Tensor, Tensor], key: Tensor, value: Tensor, columns: slice) -> tuple[Tensor, Tensor]:
        """Put new keys and values behind the old ones, or write them over their own columns (dual cache)."""
        if past[0].shape[2] <= columns.start:
            return torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        past[0][:, :, columns], past[1][:, :, columns] = key, value
        return past

    def _rotate(self, values_BHTh: Tensor, end: int) -> Tensor:
        """Rotate columns that end at ``end``."""
        places = slice(end - values_BHTh.shape[2], end)
        wide = values_BHTh.float()
        left, right = wide.chunk(2, dim=-1)
        turned = wide * self.cos_Sh[places] + torch.cat((-right, left), -1) * self.sin_Sh[places]
        return turned.type_as(values_BHTh)
