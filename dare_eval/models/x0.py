"""The model's whole guess at every forward (x0), kept small for item records: changes against the pass before.

    models = [dict(type=LLaDAModel, ..., record_x0=True)]

``dare-eval stability`` reads it (``report.stability``). Costs memory during decoding and a longer item record.

Legend: S recorded passes, G response columns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dare_eval.decoding.results import Trace

NONE_YET = -1
"""A position that the guess leaves open, or that lies behind its end."""


def x0_changes(trace: Trace, mask_id: int, ends: Collection[int]) -> list[list[object]]:
    """Return ``[forward, [[position, token], ...]]`` per pass that changed the guess.

    The guess is the committed token where there is one, else the prediction; it is cut at its first end token.
    """
    before: list[int] = []
    found: list[list[object]] = []
    passes = zip(trace.steps, trace.state_SG.tolist(), trace.proposal_SG.tolist(), strict=True)
    for step, state_G, proposal_G in passes:
        guess = [new if old == mask_id else old for old, new in zip(state_G, proposal_G, strict=True)]
        end = next((place for place, token in enumerate(guess) if token in ends), len(guess))
        now = [token if place < end else NONE_YET for place, token in enumerate(guess)]
        known = before or [NONE_YET] * len(now)
        changed: list[object] = [[place, token] for place, token in enumerate(now) if token != known[place]]
        if changed:
            found.append([step, changed])
        before = now
    return found
