"""The ``Score`` contract and the look-up of scorers.

A scorer is a function ``(response, reference, **context) -> Score``. It never raises on anything a model wrote;
a reference it cannot use gives the rule ``unparsable_gold``, which reports count apart from wrong answers. It does
raise ``UsageError`` for a context a caller got wrong: that is a fault of the run, not of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from dare_eval.registry import Registry

UNPARSABLE_GOLD = "unparsable_gold"
NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on one response.

    ``value`` is the graded credit in [0, 1]; ``extracted`` the answer that was read (None: no answer found);
    ``rule`` the name of the extraction rule that fired; ``detail`` further facts of the kind, JSON-ready.
    """

    correct: bool
    value: float
    extracted: str | None
    rule: str
    detail: dict[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """What the registry holds."""

    def __call__(self, response: str, reference: Any, **context: Any) -> Score:
        """Score one response."""


SCORERS = Registry(
    "scorer",
    "dare.scorers",
    {
        "gsm8k": "dare_eval.scoring.gsm8k:score_gsm8k",
        "math": "dare_eval.scoring.math:score_math",
        "choice": "dare_eval.scoring.choice:score_choice",
        "code": "dare_eval.scoring.code:score_code",
        "countdown": "dare_eval.scoring.countdown:score_countdown",
        "sudoku": "dare_eval.scoring.sudoku:score_sudoku",
        "instruction": "dare_eval.scoring.instruction:score_instruction",
        "label": "dare_eval.scoring.label:score_label",
        "list_ops": "dare_eval.scoring.list_ops:score_list_ops",
    },
)


def score(kind: str, response: str | None, reference: Any, **context: Any) -> Score:
    """Score ``response`` against ``reference`` by the rules of ``kind``.

    A missing response (None) is an empty one. Raises ``UsageError`` for an unknown kind or a wrong context.
    """
    scorer = cast(Scorer, SCORERS.get(kind))
    return scorer("" if response is None else str(response), reference, **context)


def binary(correct: bool, extracted: str | None, rule: str, **detail: Any) -> Score:
    """Return a 0/1 score."""
    return Score(correct, float(correct), extracted, rule, detail)


def gold_failure(reference: Any, why: str) -> Score:
    """Return the score of an item whose reference cannot be used."""
    return Score(False, 0.0, None, UNPARSABLE_GOLD, {"gold": repr(reference)[:200], "why": why})
