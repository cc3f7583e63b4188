"""What a noising process returns.

Shape suffixes: B rows, T positions. Where one sequence is noised several times, its Monte-Carlo rows are the B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Corruption:
    """Noised rows and how they were made."""

    noisy_BT: Tensor
    """Token ids with the mask id at masked positions."""
    masked_BT: Tensor
    """True where a token was replaced; which of these carry loss is the objective's choice."""
    rate_BT: Tensor
    """Probability with which the position was masked, the p of a weight 1/p; float32."""

    @classmethod
    def of(cls, ids_T: Tensor, masked_BT: Tensor, rate_BT: Tensor, mask_id: int) -> Corruption:
        """Return the corruption of one sequence by each row of masks."""
        noisy_BT = ids_T.expand(masked_BT.shape).masked_fill(masked_BT, mask_id)
        return cls(noisy_BT, masked_BT, rate_BT.float())

    @classmethod
    def join(cls, parts: Sequence[Corruption]) -> Corruption:
        """Return the rows of all parts, in order."""
        return cls(
            torch.cat([part.noisy_BT for part in parts]),
            torch.cat([part.masked_BT for part in parts]),
            torch.cat([part.rate_BT for part in parts]),
        )
