"""Settings of a comparison: which rows, from which recipes, at which budget, judged by which evaluation.

A row is ``base``, one stage (``sft``, ``vrpo``, ``dpo`` or an algorithm of reinforcement learning) or stages joined
by ``+``; each stage starts from the model of the one before. The budget holds for a row's last stage; earlier stages
run as long as their recipes say. No torch here.

    dare-train compare --algos d1,cj_grpo --seeds 3 --budget cpu_seconds=60 --dry-run
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from dare_eval.errors import UsageError
from dare_train.config import Positive, Section, setting

CURRENCIES = ("cpu_seconds", "seconds", "rollout_tokens", "forwards", "steps")
BASE = "base"
OTHER_STAGES = {"sft": "sft", "vrpo": "preference", "dpo": "preference"}
"""Stages besides reinforcement learning, and the verb that trains each."""


class BudgetSettings(Section):
    """What every row may spend on its last stage."""

    currency: Literal["cpu_seconds", "seconds", "rollout_tokens", "forwards", "steps"] = setting(
        ..., "what is counted; forwards are those of rollout and training together"
    )
    amount: float = setting(..., "how much of it", unit="currency", gt=0)


class CompareConfig(Section):
    """One comparison."""

    output_dir: str = setting("runs/compare/tiny_countdown", "folder of all runs, evaluations and the table")
    rows: tuple[str, ...] = setting(..., "what is compared: base, stages joined by '+'")
    seeds: Positive = setting(1, "training seeds per row, from 0", unit="seeds")
    budget: BudgetSettings | None = setting(None, "equal budget of the last stages; null: as their recipes say")
    base: str | None = setting(None, "checkpoint that every row starts from; null: that of its recipe")
    recipes: dict[str, str] = setting({}, "training config of a stage; 'rl': of algorithms without one of their own")
    settings: dict[str, dict[str, Any]] = setting({}, "changes of a stage's recipe: dotted key to value; 'rl' as above")
    evaluation: str | None = setting(None, "OpenCompass config that scores every row; null: that of the recipe")
    evaluations: dict[str, str] = setting({}, "such configs by base, for rows that start from different ones")
    model_name: str | None = setting(None, "model path in that config which a checkpoint replaces; null: the base")
    heldout_points: Positive = setting(20, "held-out evaluations over a run, for its stability", unit="evaluations")

    @field_validator("rows")
    @classmethod
    def _known_rows(cls, rows: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(rows)) < len(rows):
            raise ValueError("a row is named twice")
        for row in rows:
            stages = row.split("+")
            if not all(stages) or (BASE in stages and row != BASE):
                raise ValueError(f"row '{row}' is no stage, no stages joined by '+', and not 'base'")
        return rows


def read_budget(text: str) -> dict[str, Any]:
    """Return the budget that ``currency=amount`` means; raises ``UsageError``."""
    currency, sign, amount = text.partition("=")
    try:
        value = float(amount)
    except ValueError:
        value = 0.0
    if not sign or currency not in CURRENCIES or value <= 0:
        raise UsageError(
            "the budget cannot be read",
            seen=f"--budget {text}",
            allowed="CURRENCY=AMOUNT with one of " + ", ".join(CURRENCIES),
            remedy="--budget cpu_seconds=60",
        )
    return {"currency": currency, "amount": value}
