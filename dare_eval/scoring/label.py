"""Answers that are a label chosen among options (by likelihood): nothing to extract, right when equal as text."""

from __future__ import annotations

from typing import Any

from dare_eval.scoring.base import Score, binary


def score_label(response: str, reference: Any) -> Score:
    """Compare a label with the reference's; files keep 1 and "1" apart by accident, so both are read as text."""
    return binary(response == str(reference), response, "label")
