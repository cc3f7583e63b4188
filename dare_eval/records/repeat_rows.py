"""Rows beside the headline of a data set whose questions were answered several times: pass@k and majority@k.

The headline is the mean over all answers with an interval clustered by question; these rows have one value per
question. A row whose value cannot be computed (fewer answers than k to some question) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dare_eval.records.intervals import bootstrap, wilson
from dare_eval.records.items import ItemRecord
from dare_eval.records.repeats import majority_at_k, pass_at_k
from dare_eval.records.summary import ResultRow, is_scored


def answers_per_question(records: Iterable[ItemRecord]) -> int:
    """Return the largest number of scored answers to one question; 0 without any."""
    return max((len(answers) for answers in _by_question(records)), default=0)


def repeat_rows(
    records: Sequence[ItemRecord], *, ks: Iterable[int] = (), votes: bool = True, **common: Any
) -> list[ResultRow]:
    """Return pass@k for each of ``ks`` and for all answers, then majority over all; none without repeats.

    ``votes`` is False where answers are programs, which nobody counts as equal. ``common`` are ``model``, ``dataset``,
    ``expected`` (answers) and ``decode_spec`` of the headline.
    """
    questions = _by_question(records)
    repeats = max((len(answers) for answers in questions), default=0)
    if repeats < 2:
        return []
    values = {f"pass@{k}": [_passed(answers, k) for answers in questions] for k in _ks(ks, repeats)}
    if votes:
        values[f"majority@{repeats}"] = [_voted(answers, repeats) for answers in questions]
    rows = [_row(metric, found, repeats, common) for metric, found in values.items()]
    return [row for row in rows if row is not None]


def _ks(ks: Iterable[int], repeats: int) -> list[int]:
    return sorted({k for k in ks if 1 < k < repeats} | {repeats})


def _by_question(records: Iterable[ItemRecord]) -> list[list[ItemRecord]]:
    grouped: dict[str, list[ItemRecord]] = {}
    for record in sorted(records, key=lambda one: (one.question_id, one.repeat)):
        if is_scored(record):
            grouped.setdefault(record.question_id, []).append(record)
    return list(grouped.values())


def _passed(answers: Sequence[ItemRecord], k: int) -> float | None:
    return pass_at_k(len(answers), sum(bool(one.correct) for one in answers), k)


def _voted(answers: Sequence[ItemRecord], k: int) -> float | None:
    found = majority_at_k([one.extracted for one in answers], [bool(one.correct) for one in answers], k)
    return None if found is None else float(found)


def _row(metric: str, values: Sequence[float | None], repeats: int, common: Mapping[str, Any]) -> ResultRow | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    certain = all(value in (0.0, 1.0) for value in known)
    found = wilson(int(sum(known)), len(known)) if certain else bootstrap(known)
    expected = common.get("expected")
    return ResultRow(
        model=common["model"],
        dataset=common["dataset"],
        metric=metric,
        value=100.0 * found.value,
        low=100.0 * found.low,
        high=100.0 * found.high,
        method=f"{found.method} over questions",
        n=len(known),
        expected=None if expected is None else expected // repeats,
        decode_spec=common.get("decode_spec"),
    )
