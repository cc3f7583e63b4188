"""What a scorer needs of a data set's row, per benchmark: the reference it compares with and the context beside it.

Upstream's reference column is made for upstream's evaluators (HumanEval: a task name); our scorers read the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]
_MBPP_KEYS = ("test_setup_code", "test_imports")


class Inputs(NamedTuple):
    """Reference and keyword arguments of ``scoring.score``."""

    reference: Any
    context: dict[str, Any]


def plain(row: Row, reference: Any) -> Inputs:
    """Use upstream's reference as it is."""
    return Inputs(reference, {})


def under_policy(make: Callable[[Row, Any], Inputs], policy: dict[str, Any], row: Row, reference: Any) -> Inputs:
    """Use what ``make`` gives, read under changed switches of ``scoring.policy``."""
    made = make(row, reference)
    return Inputs(made.reference, {**made.context, "policy": policy})


def humaneval(row: Row, reference: Any) -> Inputs:
    """Use the check script; the prompt is code that a reply may continue."""
    return Inputs(row["test"], {"entry_point": row["entry_point"], "prompt": row["prompt"]})


def mbpp(row: Row, reference: Any) -> Inputs:
    """Use the asserts (one text in the sanitized set) and what must be imported for them."""
    given = {key: row[key] for key in _MBPP_KEYS if row.get(key)}
    tests = list(row["test_case"]) if row.get("test_case") else [row["test_list"]]
    return Inputs(tests, {"prompt": row["text"], **given})


def letters(row: Row, reference: Any) -> Inputs:
    """Use the right letter; the options in columns A, B, ... are what a reply may repeat instead."""
    options = [str(row[name]) for name in "ABCDEFGHIJ" if row.get(name) not in (None, "")]
    return Inputs(reference, {"options": options} if len(options) > 1 else {})


def winogrande(row: Row, reference: Any) -> Inputs:
    """Use the right letter; the two fillers are what a reply may repeat instead."""
    return Inputs(reference, {"options": [str(row["only_option1"]), str(row["only_option2"])]})


def mmlu_pro(row: Row, reference: Any) -> Inputs:
    """Use the right letter, whatever the config compares with; up to ten options, unused ones are named N/A."""
    return Inputs(row["answer"], {"options": [str(option) for option in row["options"] if option != "N/A"]})


def livecodebench(row: Row, reference: Any) -> Inputs:
    """Use all input/output cases, public and private; the starter code is what a reply may continue."""
    return Inputs(row["evaluation_sample"], {"prompt": str(row.get("starter_code") or "")})
