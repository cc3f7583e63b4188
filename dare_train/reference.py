"""The reference policy: what the network was before training, as a frozen copy or as the base under an adapter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dare_train.adapters import adapters_off, has_adapters


class Reference:
    """Gives the reference network of a trained one; a second one is built only without an adapter to switch off."""

    def __init__(self, network: Any, build: Callable[[], Any]) -> None:
        self._copy = None if has_adapters(network) else build().eval().requires_grad_(False)

    @contextlib.contextmanager
    def of(self, network: Any) -> Iterator[Any]:
        """Yield the reference that belongs to ``network``."""
        if self._copy is not None:
            yield self._copy
            return
        with adapters_off(network):
            yield network
