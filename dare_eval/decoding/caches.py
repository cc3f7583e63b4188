"""The cache part: which columns a pass recomputes and which keys and values it reuses.

* none: the whole canvas (block-causal families: everything up to the end of the current block).
* prefix: a block's first pass is full; later ones recompute the block and all behind it (Fast-dLLM).
* dual: a block's first pass is full; later ones recompute the block, everything else stays as that pass left it.
* block: block-causal families only and exact: a finished block is run once more with its final tokens, and its keys
  and values are kept.

Sources: Fast-dLLM, arXiv 2505.22618; SDAR, arXiv 2510.06303.
"""

from __future__ import annotations

from torch import Tensor

from dare_eval.decoding.denoiser import Denoiser, Hidden
from dare_eval.decoding.rows import Rows
from dare_eval.decoding.schedule import Block
from dare_eval.networks.cache import KVCache


class NoCache:
    """Recompute everything that may be seen; the base of the other policies."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.denoiser = denoiser

    def prefill(self, rows: Rows) -> bool:
        """Run what must be run before the first block; return whether a forward was needed."""
        return False

    def begin(self, rows: Rows) -> None:
        """Learn which rows take part in the next block, those included whose block is full already."""

    def forward(
        self, rows: Rows, block: Block, index: int, predict_RM: Tensor | None, visible: Tensor | None
    ) -> Hidden:
        """Run pass ``index`` of a block and return what predicts the columns ``predict_RM``.

        ``visible`` are the columns that a pruning policy lets the network see, None for all.
        """
        canvas = self.denoiser.canvas
        columns = slice(0, block.stop if canvas.causal else canvas.width)
        return self.denoiser.run(rows, columns if visible is None else visible, predict_RM=predict_RM)

    def close(self, rows: Rows, block: Block) -> bool:
        """Store what a finished block leaves; return whether a forward was needed."""
        return False


class RefreshingCache(NoCache):
    """Prefix and dual cache: full passes at a block's start (and every ``refresh`` passes), partial ones between."""

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__(denoiser)
        self.dual = denoiser.spec.cache == "dual"
        self.refresh = denoiser.spec.refresh
        self.cache: KVCache | None = None
        self.rows: Rows | None = None

    def forward(
        self, rows: Rows, block: Block, index: int, predict_RM: Tensor | None, visible: Tensor | None
    ) -> Hidden:
        """Run the full canvas or the block (prefix: and all behind it)."""
        width = self.denoiser.canvas.width
        if index == 0 or (self.refresh is not None and index % self.refresh == 0):
            if self.cache is None or self.rows is not rows:
                self.cache = None  # freed before the new one is allocated
                self.cache, self.rows = self.denoiser.new_cache(rows, width), rows
            return self.denoiser.run(rows, slice(0, width), predict_RM=predict_RM, cache=self.cache)
        assert self.cache is not None and self.rows is not None
        if rows is not self.rows:
            self.cache = self.denoiser.select_cache(self.cache, rows.within(self.rows), len(self.rows))
            self.rows = rows
        columns = slice(block.start, block.stop if self.dual else width)
        return self.denoiser.run(rows, columns, predict_RM=predict_RM, cache=self.cache)


class BlockCache(NoCache):
    """Keys and values of finished blocks; exact for block-causal networks."""

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__(denoiser)
        self.cache: KVCache | None = None
        self.rows: Rows | None = None
        self._part: KVCache | None = None
        self._part_rows: Rows | None = None

    def prefill(self, rows: Rows) -> bool:
        """Store the prompt's full blocks."""
        canvas = self.denoiser.canvas
        self.cache, self.rows = self.denoiser.new_cache(rows, canvas.width), rows
        if canvas.first_block:
            self.denoiser.run(rows, slice(0, canvas.first_block), cache=self.cache.first(canvas.first_block))
        return canvas.first_block > 0

    def forward(
        self, rows: Rows, block: Block, index: int, predict_RM: Tensor | None, visible: Tensor | None
    ) -> Hidden:
        """Run the block against the stored ones."""
        # A shifted network predicts the block's first token from the column before it.
        start = max(block.start - self.denoiser.shift, 0)
        columns = slice(start, block.stop)
        return self.denoiser.run(rows, columns, predict_RM=predict_RM, cache=self._of(rows, block))

    def begin(self, rows: Rows) -> None:
        """Let the rows go that have left; those that sit out the block are needed to store it."""
        self._shrink(rows)

    def close(self, rows: Rows, block: Block) -> bool:
        """Run the block with its final tokens and keep its keys and values."""
        self._part = self._part_rows = None
        self._shrink(rows)
        assert self.cache is not None
        self.denoiser.run(rows, block.columns, cache=self.cache.first(block.stop))
        return True

    def _shrink(self, rows: Rows) -> None:
        assert self.cache is not None and self.rows is not None
        if rows is not self.rows:
            self.cache, self.rows = self.cache.select(rows.within(self.rows)), rows

    def _of(self, rows: Rows, block: Block) -> KVCache:
        """Return the cache of ``rows`` up to the block's end: a view, or a copy while some rows sit out."""
        assert self.cache is not None and self.rows is not None
        if rows is self.rows:
            return self.cache.first(block.stop)
        if rows is not self._part_rows:
            self._part = self.cache.first(block.stop).select(rows.within(self.rows))
            self._part_rows = rows
        assert self._part is not None
        return self._part


CACHES: dict[str, type[NoCache]] = {
    "none": NoCache,
    "prefix": RefreshingCache,
    "dual": RefreshingCache,
    "block": BlockCache,
}
