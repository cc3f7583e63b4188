"""Log-probabilities of masked tokens for many noisy copies of many sequences, padded together.

Copies of different sequences share a forward; padding on the right is never attended to. Block-causal networks see
``[noisy copy, clean copy]`` under the block-diffusion mask, so that all blocks are scored in one pass. The head runs
on masked positions only; log-softmax in float32, sums in float64.

Legend: R rows of a forward, T columns, N masked positions of all rows, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_eval.decoding.sampler import CHUNK_ELEMENTS
from dare_eval.networks.attention import AttentionMask
from dare_eval.networks.network import DiffusionNetwork


@dataclass(frozen=True, slots=True)
class NoisyCopy:
    """One sequence with the places (columns of the sequence) that are masked."""

    ids: tuple[int, ...]
    context: int
    """Leading tokens that guidance hides."""
    masked: tuple[int, ...]


@torch.no_grad()
def log_probs(
    network: DiffusionNetwork,
    copies: Sequence[NoisyCopy],
    *,
    block_length: int | None,
    cfg_scale: float = 0.0,
    batch_size: int = 16,
) -> list[Tensor]:
    """Return log p of each copy's masked tokens, in order of their places, float64 on the CPU.

    ``block_length`` switches to block-causal scoring. Copies are sorted by length into forwards of ``batch_size``.
    """
    order = sorted(range(len(copies)), key=lambda number: len(copies[number].ids))
    found: list[Tensor] = [torch.zeros(0)] * len(copies)
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        batch = _Batch([copies[number] for number in numbers], network, block_length)
        for number, values in zip(numbers, batch.score(cfg_scale), strict=True):
            found[number] = values
    return found


class _Batch:
    """One forward's worth of copies."""

    def __init__(self, copies: list[NoisyCopy], network: DiffusionNetwork, block_length: int | None) -> None:
        self.copies, self.network, self.block_length = copies, network, block_length
        config, device = network.config, network.device
        width = max(len(copy.ids) for copy in copies)
        self.clean_RT = torch.full((len(copies), width), config.pad_id, dtype=torch.long)
        self.keep_RT = torch.zeros(len(copies), width, dtype=torch.bool)
        self.masked_RT = torch.zeros(len(copies), width, dtype=torch.bool)
        self.context_RT = torch.zeros(len(copies), width, dtype=torch.bool)
        for row, copy in enumerate(copies):
            self.clean_RT[row, : len(copy.ids)] = torch.tensor(copy.ids)
            self.keep_RT[row, : len(copy.ids)] = True
            self.masked_RT[row, list(copy.masked)] = True
            self.context_RT[row, : copy.context] = True
        for name in ("clean_RT", "keep_RT", "masked_RT", "context_RT"):
            setattr(self, name, getattr(self, name).to(device))

    def score(self, cfg_scale: float) -> list[Tensor]:
        """Return one vector of log-probabilities per copy."""
        row_N, column_N = self.masked_RT.nonzero(as_tuple=True)
        place_N = column_N - int(self.network.config.shift)
        hidden_ND = self._hidden(self.clean_RT)[row_N, place_N.clamp_min(0)]
        free_ND = None
        if cfg_scale > 0:
            hidden_prompt_RT = self.clean_RT.masked_fill(self.context_RT, self.network.config.mask_id)
            free_ND = self._hidden(hidden_prompt_RT)[row_N, place_N.clamp_min(0)]
        target_N = self.clean_RT[row_N, column_N]
        value_N = _chunked(self.network, hidden_ND, free_ND, target_N, cfg_scale)
        return list(torch.split(value_N, [len(copy.masked) for copy in self.copies]))

    def _hidden(self, clean_RT: Tensor) -> Tensor:
        noisy_RT = clean_RT.masked_fill(self.masked_RT, self.network.config.mask_id)
        if self.block_length is None:
            padded = not bool(self.keep_RT.all())
            return self.network.body(noisy_RT, mask=AttentionMask(keep_BS=self.keep_RT if padded else None))
        width = clean_RT.shape[1]
        mask = AttentionMask.noisy_clean(self.keep_RT.long() - 1, self.block_length)
        positions_1T = torch.arange(width, device=clean_RT.device).repeat(2)[None]
        both_RT = torch.cat((noisy_RT, clean_RT), dim=1)
        return self.network.body(both_RT, positions_BT=positions_1T, mask=mask)[:, :width]


def _chunked(
    network: DiffusionNetwork, hidden_ND: Tensor, free_ND: Tensor | None, target_N: Tensor, cfg_scale: float
) -> Tensor:
    """Return log p of the targets, the head applied to few positions at a time."""
    pieces = []
    chunk = max(1, CHUNK_ELEMENTS // network.config.vocab_size)
    for start in range(0, max(len(target_N), 1), chunk):
        part = slice(start, start + chunk)
        logits_NV = network.head(hidden_ND[part])
        if free_ND is not None:
            free_NV = network.head(free_ND[part])
            logits_NV = free_NV + (cfg_scale + 1) * (logits_NV - free_NV)
        pieces.append(logits_NV.log_softmax(-1).gather(-1, target_N[part, None])[:, 0].double().cpu())
    return torch.cat(pieces)
