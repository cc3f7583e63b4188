"""The order of rows and the padded batch: both follow from the seed and a position, nothing else.

Position p is the number of rows consumed since the start. Epoch ``p // rows`` has its own permutation, so a run
resumes at any position without replaying, and two numbers of processes see the same global batches.

Shape suffixes: B rows, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dare_train.data.render import Example
from dare_train.draws import derive, seeded


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded rows."""

    ids_BT: Tensor
    maskable_BT: Tensor
    """Answer positions: the only ones that may be masked."""
    valid_BT: Tensor
    """Positions that exist; the others are padding and attend to nothing."""
    keys: tuple[int, ...]
    """Place of each row in the whole run; seeds its noise."""


class RowOrder:
    """Says which row stands at which position of the run."""

    def __init__(self, rows: int, seed: int, *, shuffle: bool = True) -> None:
        self.rows, self.seed, self.shuffle = rows, seed, shuffle
        self._epoch, self._order = -1, list(range(rows))

    def __getitem__(self, position: int) -> int:
        epoch, place = divmod(position, self.rows)
        if self.shuffle and epoch != self._epoch:
            generator = seeded(derive(self.seed, "order", epoch))
            self._order = torch.randperm(self.rows, generator=generator).tolist()
            self._epoch = epoch
        return self._order[place]


def collate(
    examples: Sequence[Example],
    keys: Sequence[int],
    *,
    pad_id: int,
    eos_id: int | None = None,
    length: int | None = None,
) -> Batch:
    """Return ``examples`` padded on the right to the longest of them, or to ``length``.

    With ``eos_id`` the padding is EOS that belongs to the answer (it is attended to and trained); otherwise it is
    ``pad_id`` and outside.
    """
    longest = max(len(example.ids) for example in examples)
    width = max(longest, length or 0)
    ids_BT = torch.full((len(examples), width), pad_id if eos_id is None else eos_id)
    place_T = torch.arange(width)
    size_B1 = torch.tensor([[len(example.ids)] for example in examples])
    prompt_B1 = torch.tensor([[example.prompt_length] for example in examples])
    for row, example in enumerate(examples):
        ids_BT[row, : len(example.ids)] = torch.tensor(example.ids)
    valid_BT = (place_T < size_B1) if eos_id is None else torch.ones_like(ids_BT, dtype=torch.bool)
    return Batch(ids_BT, valid_BT & (place_T >= prompt_B1), valid_BT, tuple(keys))
