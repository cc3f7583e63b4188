"""``DiffusionPPLInferencer``: upstream's perplexity inferencer for models that estimate likelihoods by sampling.

Upstream asks for the perplexity of each whole prompt. The noise of a Monte-Carlo estimate over the shared question
would drown the difference between the options, so here only the options are scored, given what they share. Our
infer task puts this class in the place of upstream's; data set configs and prompt hashes stay as they are.
"""

from __future__ import annotations

from typing import Any

from opencompass.openicl.icl_inferencer import PPLInferencer

from dare_eval.inferencers.labelled import LabelledInferencer


class DiffusionPPLInferencer(LabelledInferencer, PPLInferencer):
    """Chooses the option with the best log-likelihood per token (``likelihood=dict(rank_by=...)`` changes that)."""

    rank_by = "token"

    def inference(self, *args: Any, normalizing_str: str | None = None, **kwargs: Any) -> list[Any]:
        """Score as :class:`LabelledInferencer` does.

        With ``normalizing_str``, which no stock config sets, upstream's loop over the model's ``get_ppl`` runs.
        """
        if normalizing_str is None:
            return super().inference(*args, **kwargs)
        found: list[Any] = PPLInferencer.inference(self, *args, normalizing_str=normalizing_str, **kwargs)
        return found
