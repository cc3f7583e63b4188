"""Mutated responses through every scorer: no exception, no hang, sane scores.

``DARE_FUZZ`` multiplies the counts; 20 gives the full run (100,000 through each fast kind, 5,000 through math)::

    DARE_FUZZ=20 pytest tests/scoring/test_mutations.py
"""

from __future__ import annotations

import os
import time

import pytest

from dare_eval.scoring import score
from tests.scoring.responses import CALLS, mutations

SCALE = float(os.environ.get("DARE_FUZZ", "1"))
COUNTS = {
    "gsm8k": 5000,
    "choice": 5000,
    "countdown": 5000,
    "sudoku": 5000,
    "list_ops": 1000,
    "instruction": 500,
    "math": 250,
}
ITEM_LIMIT_S = 10.0


@pytest.mark.parametrize("kind", COUNTS)
def test_mutated_responses(kind):
    reference = CALLS[kind][0]
    slowest = 0.0
    for response in mutations(kind, int(COUNTS[kind] * SCALE), seed=1):
        started = time.monotonic()
        found = score(kind, response, reference)
        slowest = max(slowest, time.monotonic() - started)
        assert 0.0 <= found.value <= 1.0 and (found.value == 1.0 or not found.correct), response
    assert slowest < ITEM_LIMIT_S + 20, "an item took longer than its limit and the start of a worker"
