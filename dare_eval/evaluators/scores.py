"""Scores many responses of one kind; kinds that wait for processes of their own take several at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from dare_eval.evaluators.inputs import Inputs
from dare_eval.scoring import Score, score

WAITING = ("code",)
"""Kinds whose scorer waits for a sandboxed process."""


def score_all(kind: str, responses: Sequence[str], made: Sequence[Inputs]) -> list[Score]:
    """Return one score per response, in order."""

    def one(place: int) -> Score:
        return score(kind, responses[place], made[place].reference, **made[place].context)

    if len(responses) != len(made):
        raise ValueError(f"{len(responses)} responses but {len(made)} references")
    if kind not in WAITING:
        return [one(place) for place in range(len(made))]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        return list(threads.map(one, range(len(made))))
