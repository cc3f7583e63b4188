"""Stands in for randomness and for networks in golden tests: recorded draws, stored logits."""

from __future__ import annotations

import torch


class RecordedDraws:
    """Serves the random numbers a reference drew, in its order."""

    def __init__(self, draws):
        self.waiting = [draw["value"] for draw in draws]

    def rand(self, *shape):
        return torch.tensor(self.waiting.pop(0), dtype=torch.float32).reshape(shape)

    def used_up(self) -> bool:
        return not self.waiting


class StoredLogits:
    """A network whose hidden states are the logits a file stores, so that gather, shift and loss are ours."""

    def __init__(self, logits_BTV, *more):
        self.calls = [logits_BTV, *more]
        self.seen = []

    def body(self, ids_BT, *, positions_BT=None, mask=None):
        self.seen.append({"ids": ids_BT, "positions": positions_BT, "mask": mask})
        logits = self.calls.pop(0)
        assert logits.shape[:2] == ids_BT.shape
        return logits

    def head(self, hidden_XV):
        return hidden_XV


def bools(values):
    return torch.tensor(values, dtype=torch.bool)
