"""Token editing: committed tokens of the current block are replaced while the block is being decoded (LLaDA2.1).

In the pass that fills masks, every committed token of the block whose best value changed and is likelier than
``edit_threshold`` is replaced. A block is final when a pass that began without masks edits nothing, or after
``max_post_steps`` such passes. Source: LLaDA2.1, the family's generate().

Legend: R rows, M candidate positions.
"""

from __future__ import annotations

from torch import Tensor

from dare_eval.decoding.rows import Rows
from dare_eval.spec import DecodeSpec


class Editor:
    """Decides on replacements and on when a row's block is stable; one per block."""

    def __init__(self, spec: DecodeSpec) -> None:
        self.threshold, self.most_passes = spec.edit_threshold or 0.0, spec.max_post_steps or 0
        self._post: dict[int, int] = {}

    def select(self, tokens_RM: Tensor, current_RM: Tensor, score_RM: Tensor, editable_RM: Tensor) -> Tensor:
        """Return the committed positions to replace, bool [R, M]."""
        return editable_RM & (tokens_RM != current_RM) & (score_RM > self.threshold)

    def unstable(self, rows: Rows, before: list[int], after: list[int], edited: list[bool]) -> list[bool]:
        """Return which rows need another pass, given their masks before and after the last one."""
        return [
            (had > 0 or changed) and (left > 0 or self._allow_post(row))
            for row, had, left, changed in zip(rows.ids, before, after, edited, strict=True)
        ]

    def _allow_post(self, row: int) -> bool:
        self._post[row] = self._post.get(row, 0) + 1
        return self._post[row] <= self.most_passes
