"""The reference policy: what the network was before training, as a frozen copy or as the base under an adapter."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from dare_train.adapters import adapters_off, has_adapters


class Reference:
    """Gives the reference network of a trained one; a copy is made only when there is no adapter to switch off."""

    def __init__(self, network: Any) -> None:
        self._copy = None
        if not has_adapters(network):
            self._copy = copy.deepcopy(network).eval().requires_grad_(False)

    @contextlib.contextmanager
    def of(self, network: Any) -> Iterator[Any]:
        """Yield the reference that belongs to ``network``."""
        if self._copy is not None:
            yield self._copy
            return
        with adapters_off(network):
            yield network
