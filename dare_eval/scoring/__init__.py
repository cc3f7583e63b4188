"""One scorer for benchmark metric and training reward.

``score(kind, response, reference, **context)`` answers with a ``Score``; kinds are looked up in a lazy registry
that outside packages extend through the entry-point group ``dare.scorers``. The rules of each kind are written in
``docs/scoring.md``. Nothing here imports torch or opencompass.
"""

from dare_eval.scoring.base import SCORERS, UNPARSABLE_GOLD, Score, score

__all__ = ["SCORERS", "UNPARSABLE_GOLD", "Score", "score"]
