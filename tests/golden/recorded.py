"""Stands in for randomness and for networks in golden tests: recorded draws, stored logits."""

from __future__ import annotations

from types import SimpleNamespace

import torch


class RecordedDraws:
    """Serves the random numbers a reference drew, in its order."""

    def __init__(self, draws):
        self.waiting = [draw["value"] for draw in draws]

    def rand(self, *shape):
        return torch.tensor(self._next(), dtype=torch.float32).reshape(shape)

    def uniform(self, low, high):
        return float(self._next())

    def randint(self, low, high):
        value = self._next()
        while isinstance(value, list):
            (value,) = value
        assert low <= value < high
        return value

    def randperm(self, count):
        order = torch.tensor(self._next())
        assert sorted(order.tolist()) == list(range(count))
        return order

    def _next(self):
        return self.waiting.pop(0)

    def used_up(self) -> bool:
        return not self.waiting


class StoredLogits:
    """A network whose hidden states are the logits a file stores, so that gather, shift and loss are ours."""

    def __init__(self, logits_BTV, *more):
        self.calls = [logits_BTV, *more]
        self.config = SimpleNamespace(vocab_size=logits_BTV.shape[-1])
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
