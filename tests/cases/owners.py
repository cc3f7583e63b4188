"""Who tests which case line. The one place where a line may be pending, with the title of the issue that brings it.

A key is a line's id, ``category:op`` for decoding operations, or a category whose further lines must pass when
dropped in. A line that no key covers is a failure of ``test_owners.py``.
"""

from __future__ import annotations

from typing import Any

SCORING = "One scorer for metric and reward, a real sandbox, and the benchmark suite"

OWNERS = {
    "answer_extraction/gsm8k": "tests/cases/test_answers.py",
    "answer_extraction/math": "tests/cases/test_answers.py",
    "answer_extraction/choice": "tests/cases/test_answers.py",
    "countdown": "tests/cases/test_answers.py",
    "sudoku": "tests/cases/test_answers.py",
    "reporting": "tests/cases/test_reporting_cases.py",
    "code_extraction": "tests/cases/test_code.py",
    "code_execution": "tests/cases/test_code.py",
    "C168": "tests/cases/test_answers.py",
    "C170": "tests/cases/test_config.py",
    "C172": "tests/cases/test_config.py",
    "C173": "tests/cases/test_config.py",
    "C175": "tests/cases/test_config.py",
    **dict.fromkeys(("C180", "C182", "C183", "C185"), "tests/cases/test_caching_cases.py"),
    "decoding:transfer_schedule": "tests/cases/test_decoding_cases.py",
    "decoding:threshold_decode": "tests/cases/test_decoding_cases.py",
    "decoding:decode_text": "tests/cases/test_decoding_cases.py",
    **dict.fromkeys(("C129", "C130", "C132", "C134", "C135", "C140", "C142"), "tests/cases/test_decoding_cases.py"),
    **dict.fromkeys(("C144", "C146", "C147", "C149"), "tests/cases/test_decoding_cases.py"),
    **dict.fromkeys(("training/advantage", "C157", "C159"), "tests/cases/test_training_cases.py"),
    "C160": "tests/train/test_scorer.py",
    "C162": "tests/train/test_resume.py",
    "C164": "tests/train/test_preference.py",
    "C165": "tests/train/test_loop.py",
    "C166": "tests/rl/test_rewards.py",
    "C169": "tests/rl/test_rollout.py",
    **dict.fromkeys(("C177", "C178"), "tests/rl/test_cli.py"),
}
"""Key to the module that runs its lines."""

PENDING: dict[str, str] = {}
"""Key to the title of the issue that will own it."""


def keys(line: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys that cover a line, the narrowest first."""
    operation = line["input"].get("op") if isinstance(line["input"], dict) else None
    return (line["id"], f"{line['category']}:{operation}", line["category"])


def owner(line: dict[str, Any]) -> str | None:
    """Return the module that runs a line, the issue it waits for, or None when nobody covers it."""
    for key in keys(line):
        found = OWNERS.get(key) or PENDING.get(key)
        if found:
            return found
    return None
