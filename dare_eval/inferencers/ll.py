"""``DiffusionLLInferencer``: upstream's log-likelihood inferencer, where the data set names the continuation.

The options fill a gap in the middle of a sentence; what follows the gap (column ``cont``) is scored after each of
them, so all options have the same continuation and unlike contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opencompass.openicl.icl_inferencer import LLInferencer

from dare_eval.inferencers.labelled import LabelledInferencer
from dare_eval.inferencers.options import Pair


class DiffusionLLInferencer(LabelledInferencer, LLInferencer):
    """Chooses the option after which the continuation has the best log-likelihood."""

    rank_by = "sum"

    def split(self, test: Any, index: int, prompts: Sequence[Any]) -> list[Pair]:
        """Return each option's sentence, split before the continuation."""
        return [self.model.pair_before(prompt, test[index]["cont"]) for prompt in prompts]
