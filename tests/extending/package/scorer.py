"""A scorer: is the last word of the response ``even`` or ``odd``, as the number in the reference is."""

from __future__ import annotations

from typing import Any

from dare_eval.scoring.base import Score


def score_parity(response: str, reference: Any, **context: Any) -> Score:
    """Score one response; no answer when its last word is neither."""
    words = response.lower().split()
    said = words[-1] if words and words[-1] in ("even", "odd") else None
    correct = said == ("odd" if int(reference) % 2 else "even")
    return Score(correct, float(correct), said, "last_word" if said else "no_answer")
