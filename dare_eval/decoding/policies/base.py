"""The interface of a transfer policy: given the proposals of a pass, which positions are committed.

A policy of an outside package subclasses ``Policy``, is listed in the entry-point group ``dare.decoders`` and is
then named by ``policy=`` in a DecodeSpec. It keeps no state between passes: rows come and go.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dare_eval.decoding.schedule import Block
from dare_eval.decoding.step import Step
from dare_eval.spec import DecodeSpec


class Policy:
    """Base of all transfer policies."""

    fields: ClassVar[frozenset[str]] = frozenset()
    """Spec fields it reads, of those that only some policies read."""
    score: ClassVar[str] = "confidence"
    """What proposals are scored by: ``confidence``, ``margin``, ``entropy`` or ``none``."""
    noise: bool = False
    """Whether it needs random draws per position."""

    def __init__(self, spec: DecodeSpec) -> None:
        self.spec = spec
        self.threshold = 0.0 if spec.threshold is None else spec.threshold
        self.factor = 1.0 if spec.factor is None else spec.factor

    def select(self, step: Step) -> Tensor:
        """Return the positions to commit, bool [R, M]; at least one per row, none outside ``step.live_RM``."""
        raise TypeError(f"{type(self).__name__} defines no select()")

    def counts(self, step: Step) -> list[int] | None:
        """Return how many positions :meth:`select` commits per row where the host knows it, sparing a device sync."""
        return None

    def visible(self, block: Block, width: int) -> list[int] | None:
        """Return the canvas columns the network may see while ``block`` is decoded; None for all."""
        return None
