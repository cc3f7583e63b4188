"""Fewer items than a data set has, for trying a config out: ``dare-eval run --limit N``, or ``DARE_LIMIT=N``.

The variable is for plain ``opencompass``; it is applied when a run is planned and again when it is scored. A report
marks such rows as a subset.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

from dare_eval.errors import UsageError

VARIABLE = "DARE_LIMIT"


def limit_of_environment() -> int | None:
    """Return the limit that ``DARE_LIMIT`` sets, or None; raises ``UsageError`` when it is no whole number above 0."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"{VARIABLE} is no number of items", seen=text, allowed="a whole number above 0")
    return int(text)


def apply_limit(dataset_cfgs: list[Any], limit: int) -> None:
    """Cut every data set config to its first ``limit`` questions, in place; all repeats of a question stay."""
    for dataset_cfg in {id(cfg): cfg for cfg in dataset_cfgs}.values():
        reader_cfg = dataset_cfg["reader_cfg"]
        reader_cfg["test_range"] = limited(reader_cfg.get("test_range"), limit, int(dataset_cfg.get("n", 1)))


def limited(test_range: Any, limit: int, repeats: int = 1) -> str:
    """Return the ``test_range`` that keeps the first ``limit`` of what ``test_range`` keeps (a number gives way).

    OpenCompass evaluates ``index_list`` + this text, with ``total_size`` rows that hold all questions once for each
    repeat, one after the other.
    """
    if repeats > 1 and not isinstance(test_range, str):
        borders = [f"{number}*total_size//{repeats}" for number in range(repeats + 1)]
        parts = [f"index_list[{start}:{end}][:{limit}]" for start, end in pairwise(borders)]
        return f"[:0].__add__({'+'.join(parts)})"
    return f"{test_range if isinstance(test_range, str) else ''}[:{limit}]"


def subset_of(dataset_cfg: Any) -> str | None:
    """Return in words which part of the whole data set a config takes; None for all of it."""
    test_range = dataset_cfg.get("reader_cfg", {}).get("test_range")
    if test_range is None:
        return None
    first = str(test_range).rpartition("[:")[2].rstrip("])")
    return f"first {first}" if str(test_range).startswith("[:") and first.isdigit() else f"range {test_range}"
