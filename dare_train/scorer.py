"""Log-probabilities of target tokens, the one forward that every objective shares.

The head and the softmax run only at the positions asked for. Families that predict token i + 1 in row i (Dream)
are read one row earlier; position 0 keeps its own row. Block-causal networks score all blocks of a sequence at once
from [noisy | clean] (BD3-LM, arXiv 2503.09573): a noisy block sees itself and the clean blocks before it, and
the last layer works on the noisy half only where its kernel can. Rows of unequal length are laid end to end, so that no
work goes into padding, where the attention kernel can do that. Leaves out where the noise comes from.

Shape suffixes: B rows, T positions, S columns of a forward, D width, X chosen positions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dare_eval.networks import AttentionMask
from dare_eval.networks.attention.plan import FLEX_FROM
from dare_train.token_loss import target_logps


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """How a network is asked for log-probabilities; one for all objectives of a run."""

    shift: bool = False
    """Row i of the logits predicts token i + 1."""
    block_length: int | None = None
    """Blocks of the doubled sequence; None for a network that attends in both directions."""
    pack: bool = True
    """Lay rows of unequal length end to end."""
    trim: bool = True
    """Leave out of the doubled sequence what no chosen position depends on."""
    temperature: float = 1.0
    """Divides the logits: the distribution that a rollout at this temperature sampled from."""

    def __call__(
        self, network: Any, noisy_BT: Tensor, target_BT: Tensor, chosen_BT: Tensor, valid_BT: Tensor
    ) -> Tensor:
        """Return log p(target) at the chosen positions, row by row, in at least float32: [X].

        ``valid_BT`` is False at padding, which no position attends to; with blocks it stands on the right.
        """
        if self.block_length is not None:
            unequal = self.pack and self.trim and not bool(valid_BT.all()) and bool(chosen_BT.any())
            score = self._packed_blocks if unequal and has_sparse_kernel(network) else self._by_blocks
            return score(network, noisy_BT, target_BT, chosen_BT, valid_BT)
        if bool(valid_BT.all()):
            return self._at(network, network.body(noisy_BT), target_BT, chosen_BT)
        place_BT = (valid_BT.cumsum(1) - 1).clamp_min(0)  # padding on either side takes no position
        if not self.pack:
            hidden_BTD = network.body(noisy_BT, positions_BT=place_BT, mask=AttentionMask.padding(valid_BT))
            return self._at(network, hidden_BTD, target_BT, chosen_BT, place_BT)
        segment_BT = torch.arange(len(valid_BT), device=valid_BT.device)[:, None].expand(valid_BT.shape)
        packed = [tensor[valid_BT][None] for tensor in (noisy_BT, target_BT, chosen_BT, segment_BT, place_BT)]
        noisy_1S, target_1S, chosen_1S, segment_1S, place_1S = packed
        with packing_kernel(network):
            hidden_1SD = network.body(noisy_1S, positions_BT=place_1S, mask=AttentionMask.packed(segment_1S))
        return self._at(network, hidden_1SD, target_1S, chosen_1S, place_1S)

    def _by_blocks(
        self, network: Any, noisy_BT: Tensor, target_BT: Tensor, chosen_BT: Tensor, valid_BT: Tensor
    ) -> Tensor:
        length, device = noisy_BT.shape[1], noisy_BT.device
        first, last = _block_span(chosen_BT, int(self.block_length or 1)) if self.trim else (0, length)
        noisy_place = torch.arange(first, min(last, length), device=device)
        clean_place = torch.arange(max(last - int(self.block_length or 1), 0) if self.trim else length, device=device)
        place_1S = torch.cat([noisy_place, clean_place])[None]
        mask = AttentionMask(
            keep_BS=None if bool(valid_BT.all()) else valid_BT[:, place_1S[0]],
            block_BS=place_1S // int(self.block_length or 1),
            noisy_BS=torch.arange(place_1S.shape[1], device=device)[None] < len(noisy_place),
        )
        ids_BS = torch.cat([noisy_BT[:, noisy_place], target_BT[:, clean_place]], dim=1)
        noisy = torch.arange(len(noisy_place), device=device).expand(len(ids_BS), -1)
        # The kernels of long sequences have no pass in which queries are some of the columns.
        dense = place_1S.shape[1] < FLEX_FROM and getattr(network, "attn_backend", "") in ("auto", "sdpa")
        last_layer = {"wanted_BM": noisy} if dense else {}
        hidden_BSD = network.body(ids_BS, positions_BT=place_1S.expand(ids_BS.shape), mask=mask, **last_layer)
        hidden_BTD = hidden_BSD[:, : len(noisy_place)]
        return self._at(network, hidden_BTD, target_BT[:, noisy_place], chosen_BT[:, noisy_place])

    def _packed_blocks(
        self, network: Any, noisy_BT: Tensor, target_BT: Tensor, chosen_BT: Tensor, valid_BT: Tensor
    ) -> Tensor:
        """Do what ``_by_blocks`` does with the rows laid end to end, each trimmed to what its own blocks need."""
        size, (rows, width), device = int(self.block_length or 1), noisy_BT.shape, noisy_BT.device
        place_BT = torch.arange(width, device=device).expand(rows, -1)
        row_BT = torch.arange(rows, device=device)[:, None].expand(-1, width)
        first_B1 = torch.where(chosen_BT, place_BT, width).amin(1, keepdim=True) // size * size
        last_B1 = (torch.where(chosen_BT, place_BT, -1).amax(1, keepdim=True) // size + 1) * size
        noisy = valid_BT & (place_BT >= first_B1) & (place_BT < last_B1)
        clean = valid_BT & (place_BT < last_B1 - size)

        def laid(noisy_part: Tensor, clean_part: Tensor) -> Tensor:
            return torch.cat([noisy_part[noisy], clean_part[clean]])[None]

        place_1S, count = laid(place_BT, place_BT), int(noisy.sum())
        mask = AttentionMask(
            segment_BS=laid(row_BT, row_BT),
            block_BS=place_1S // size,
            noisy_BS=torch.arange(place_1S.shape[1], device=device)[None] < count,
        )
        hidden_1SD = network.body(laid(noisy_BT, target_BT), positions_BT=place_1S, mask=mask)[:, :count]
        return self._at(network, hidden_1SD, target_BT[noisy][None], chosen_BT[noisy][None], place_1S[:, :count])

    def _at(
        self, network: Any, hidden_BTD: Tensor, target_BT: Tensor, chosen_BT: Tensor, place_BT: Tensor | None = None
    ) -> Tensor:
        row_X, column_X = chosen_BT.nonzero(as_tuple=True)
        source_X = column_X
        if self.shift:
            place_X = column_X if place_BT is None else place_BT[row_X, column_X]
            source_X = column_X - (place_X > 0).long()
        hidden_XD = hidden_BTD[row_X, source_X]
        if self.temperature != 1.0:
            hidden_XD = hidden_XD / self.temperature  # heads are linear without bias: this divides the logits
        return target_logps(network, hidden_XD, target_BT[row_X, column_X])


def has_sparse_kernel(network: Any) -> bool:
    """Return whether attention over packed [noisy | clean] rows skips what the mask forbids; dense kernels do not."""
    backend = getattr(network, "attn_backend", "")
    return backend == "flex" or (backend == "auto" and network.device.type == "cuda")


@contextlib.contextmanager
def packing_kernel(network: Any) -> Iterator[None]:
    """Let a network on the CPU whose kernel is 'auto' attend segment by segment; a dense mask would be slower."""
    chosen = network.attn_backend
    if chosen == "auto" and network.device.type == "cpu":
        network.attn_backend = "varlen"
    try:
        yield
    finally:
        network.attn_backend = chosen


def _block_span(chosen_BT: Tensor, block_length: int) -> tuple[int, int]:
    """Return where the first block with a chosen position begins and the last one ends, over all rows."""
    places = chosen_BT.any(0).nonzero().flatten()
    if not len(places):
        return 0, block_length
    return int(places[0]) // block_length * block_length, (int(places[-1]) // block_length + 1) * block_length
