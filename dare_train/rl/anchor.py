"""The reference of the KL term: the base, or a copy that follows the policy every so many steps.

Under an adapter the reference is the base with the adapter switched off, which does not follow (as in the published
trainers, whose synchronisation needs a second network).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dare_train.reference import Reference
from dare_train.rl.algorithm import Kl


class Anchor(Reference):
    """A reference that may take up the policy."""

    def __init__(self, network: Any, build: Callable[[], Any], kl: Kl) -> None:
        super().__init__(network, build)
        self.kl, self.moved = kl, False

    def follow(self, network: Any, step: int, per_rollout: int) -> None:
        """Move towards the policy when a multiple of ``sync_every`` was passed since the rollout before."""
        every = self.kl.sync_every
        if not every or self._copy is None or step // every == max(0, step - per_rollout) // every:
            return
        with torch.no_grad():
            for old, new in zip(self._copy.parameters(), network.parameters(), strict=True):
                old.lerp_(new.detach().to(old.dtype), self.kl.sync_share)
        self.moved = True

    def state(self) -> dict[str, Tensor]:
        """Return this process's part of the reference."""
        return {} if self._copy is None else {name: p.detach().clone() for name, p in self._copy.named_parameters()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take up what :meth:`state` gave."""
        if self._copy is None:
            return
        with torch.no_grad():
            for name, parameter in self._copy.named_parameters():
                parameter.copy_(state[name])
        self.moved = True
