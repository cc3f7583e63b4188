"""``DiffusionLLInferencer``: upstream's log-likelihood inferencer, where the data set names the continuation.

The options fill a gap in the middle of a sentence; what follows the gap (column ``cont``) is scored after each of
them, so all options have the same continuation and unlike contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opencompass.openicl.icl_inferencer import LLInferencer

from dare_eval.errors import DataError
from dare_eval.inferencers.labelled import LabelledInferencer
from dare_eval.inferencers.options import Pair


class DiffusionLLInferencer(LabelledInferencer, LLInferencer):
    """Chooses the option after which the continuation has the best log-likelihood."""

    rank_by = "sum"

    def look(self, test: Any, index: int) -> None:
        """Refuse a row without a continuation: each option's sentence would have the likelihood 1."""
        if not str(test[index]["cont"]).strip():
            raise DataError(
                "the continuation is empty",
                seen=f"cont = {test[index]['cont']!r}",
                allowed="a text to score",
                remedy="repair the row, or leave it out",
            )

    def split(self, test: Any, index: int, prompts: Sequence[Any]) -> list[Pair]:
        """Return each option's sentence, split before the continuation."""
        return [self.model.pair_before(prompt, test[index]["cont"]) for prompt in prompts]
