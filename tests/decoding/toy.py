"""A network whose logits are written down: a function of the tokens and their positions, no weights."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

from dare_eval.networks.config import NetworkConfig


class ToyConfig(SimpleNamespace):
    """Fields of a network config as they are needed, with its own rule for the room on a canvas."""

    canvas_length = NetworkConfig.canvas_length


class ToyNetwork:
    """Implements what decoding asks of a network; hidden states are the logits themselves.

    ``logits(ids_BT, positions_BT)`` returns [B, T, V]; ``calls`` keeps the shape of every forward.
    """

    def __init__(self, logits: Callable[[Tensor, Tensor], Tensor], vocab_size: int, mask_id: int, **config):
        self.logits, self.device, self.calls = logits, torch.device("cpu"), []
        ids = {"eos_id": -1, "eot_id": None, "pad_id": 0, "bos_id": None, "stop_ids": ()}
        rest = {"family": "llada", "shift": False, "block_length": None, "context_length": 4096}
        self.config = ToyConfig(
            vocab_size=vocab_size, mask_id=mask_id, learned_positions=None, **{**ids, **rest, **config}
        )

    def body(self, ids_BT, *, positions_BT=None, mask=None, cache=None, columns=None, wanted_BM=None) -> Tensor:
        self.calls.append(tuple(ids_BT.shape))
        if positions_BT is None:
            positions_BT = torch.arange(ids_BT.shape[1]).expand_as(ids_BT)
        logits_BTV = self.logits(ids_BT, positions_BT.expand_as(ids_BT))
        if wanted_BM is None:
            return logits_BTV
        return logits_BTV[torch.arange(len(wanted_BM))[:, None], wanted_BM]

    def head(self, hidden_XD) -> Tensor:
        return hidden_XD.float().clone()


def constant(table: dict[int, list[float]], vocab_size: int):
    """Return logits that depend on the position alone; positions not in the table get zeros."""

    def logits(ids_BT, positions_BT):
        out_BTV = torch.zeros(*ids_BT.shape, vocab_size)
        for position, row in table.items():
            out_BTV[positions_BT == position] = torch.tensor(row)
        return out_BTV

    return logits


def uniform(vocab_size: int, mask_id: int | None = None):
    """Return equal logits for every value, the mask excluded when its id is given."""

    def logits(ids_BT, positions_BT):
        out_BTV = torch.zeros(*ids_BT.shape, vocab_size)
        if mask_id is not None:
            out_BTV[..., mask_id] = -torch.inf
        return out_BTV

    return logits
