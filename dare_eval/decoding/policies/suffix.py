"""Suffix pruning: while a block is decoded, the network sees only the nearest masks behind it and the last column.

Far masks of the suffix add cost and little information; one block length of them and the canvas's last column (which
tells how long the response is) are kept, at their own positions. Tokens are committed by the threshold rule. The
paper's adaptive threshold and its early exit are separate and not part of this rule (``early_stop`` covers the exit).
Source: Streaming-dLLM, arXiv 2601.17917, attenuation-guided suffix modelling (window 32, one tail position).
"""

from __future__ import annotations

from dare_eval.decoding.policies.threshold import Threshold
from dare_eval.decoding.schedule import Block


class SuffixPruning(Threshold):
    """Threshold rule on a pruned canvas."""

    def visible(self, block: Block, width: int) -> list[int]:
        """Return everything up to the block's end, one block length behind it, and the last column."""
        near = min(block.stop + self.spec.block_length, width)
        return [*range(near), *([width - 1] if near < width else [])]
