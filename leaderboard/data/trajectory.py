"""How one answer formed: which forward revealed which position, as a picture and as the text at any forward.

Made from the step map of an item record; nothing is decoded again. Positions behind the answer's end (EOS, fill) are
kept in the picture. Legend: S forwards, G response positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dare_eval.records.items import ItemRecord

MASKED, KNOWN, NEW, EDITED = 0, 1, 2, 3
MASK = "\u2591"
MAX_CELLS = 2**27
"""Most forwards times positions of a picture: those of 8,192 tokens decoded one by one, and then some."""
MAX_SIDE = 400
"""Longest side of the picture; longer ones are thinned by taking the largest state of neighbours."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One item's denoising."""

    item: ItemRecord
    steps_G: tuple[int, ...]
    """0-based forward that revealed each position, -1 never."""
    forwards: int
    edits: tuple[tuple[int, int], ...]
    """(forward, position) of every replaced token."""


def trajectory(item: ItemRecord) -> Trajectory | None:
    """Return the denoising of ``item``; None without a step map, or where its picture would not fit into memory."""
    if not item.step_map:
        return None
    steps = tuple(item.step_map)
    forwards = max(max(steps) + 1, 1, item.nfe or 0)
    if forwards * len(steps) > MAX_CELLS:
        return None
    return Trajectory(item, steps, forwards, _edits(item.edits))


def states(found: Trajectory) -> NDArray[np.int8]:
    """Return the state of every position after every forward, [S, G]: masked, known, new, edited."""
    steps_G = np.asarray(found.steps_G)
    forward_S = np.arange(found.forwards)
    known_SG = (steps_G[None] >= 0) & (steps_G[None] < forward_S[:, None])
    state_SG = known_SG.astype(np.int8)  # MASKED is 0, KNOWN is 1
    state_SG[(steps_G[None] == forward_S[:, None])] = NEW
    for forward, position in found.edits:
        if forward < found.forwards and position < len(steps_G):
            state_SG[forward, position] = EDITED
    return state_SG


def thinned(state_SG: NDArray[np.int8]) -> tuple[NDArray[np.int8], int, int]:
    """Return a picture of at most :data:`MAX_SIDE` rows and columns, and how many each pixel stands for."""
    every = [max(1, -(-size // MAX_SIDE)) for size in state_SG.shape]
    rows, columns = every
    padded = np.pad(state_SG, [(0, -state_SG.shape[0] % rows), (0, -state_SG.shape[1] % columns)])
    shape = (padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    return padded.reshape(shape).max(axis=(1, 3)), rows, columns


def pieces_at(found: Trajectory, forward: int, piece: Callable[[int], str] | None) -> list[tuple[str, int]]:
    """Return the text after ``forward`` (0-based) as ``(piece, forward that revealed it)``; -1 marks a mask.

    Tokens of an edited position are shown in their last form. Without ``piece`` the response's words stand for the
    tokens where they are equally many, else token numbers.
    """
    tokens = found.item.tokens or ()
    words = found.item.response.split()
    shown = []
    for position, step in enumerate(found.steps_G):
        if position >= len(tokens):
            text = "\u23ce" if position == len(tokens) else ""
        elif piece is not None:
            text = piece(tokens[position])
        else:
            text = f"{words[position]} " if len(words) == len(tokens) else f"{tokens[position]} "
        known = 0 <= step <= forward
        if text or not known:
            shown.append((text if known else MASK, step if known else -1))
    return shown


def contrast(a: Sequence[ItemRecord], b: Sequence[ItemRecord]) -> tuple[ItemRecord | None, ItemRecord | None]:
    """Return a right and a wrong item worth looking at side by side.

    The same question, right in ``a`` and wrong in ``b`` or the other way round; else the first right and the first
    wrong item of ``a``.
    """
    traced = {item.item_id: item for item in b if item.step_map}
    for item in a:
        other = traced.get(item.item_id)
        if item.step_map and other is not None and item.correct is not None and item.correct != other.correct:
            return (item, other) if item.correct else (other, item)
    right = next((item for item in a if item.step_map and item.correct), None)
    return right, next((item for item in a if item.step_map and item.correct is False), None)


def _edits(value: Any) -> tuple[tuple[int, int], ...]:
    """Return (forward, position) of edits, as decoders write them; other shapes are left out."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    rows = [row for row in value if isinstance(row, Sequence) and len(row) >= 2]
    return tuple((int(r[0]), int(r[1])) for r in rows if all(isinstance(one, int) and one >= 0 for one in r[:2]))
