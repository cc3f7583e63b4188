"""Rows for data sets whose questions are answered several times: pass@k and the majority's answer.

The mean over all answers is the ordinary row (``records.summary``), clustered by question. The rows here have one
value per question: pass@k by the unbiased estimator, maj@k from the first k answers. They are given only when every
question has at least k scored answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dare_eval.records.items import ItemRecord
from dare_eval.records.repeats import majority_at_k, pass_at_k
from dare_eval.records.summary import ResultRow, is_scored, score_interval

PROGRAMS, PROGRAM_METRIC = "code", "pass@1"
"""Kind of scorer and metric of benchmarks whose answers are programs."""


def repeat_rows(
    records: Sequence[ItemRecord], head: ResultRow, *, ks: Iterable[int] = (), kind: str = ""
) -> list[ResultRow]:
    """Return pass@k and maj@k for the largest k that every question supports; none when that is 1.

    ``head`` is the ordinary row of the same records; its counts and costs are kept, ``n`` becomes the number of
    questions. ``ks`` are further k of pass@k. ``kind`` is the scorer's: answers that are programs (also where the
    stock evaluator alone ran them, which the metric tells) have no maj@k, because nobody counts programs as equal.
    """
    groups: dict[str, list[ItemRecord]] = {}
    for record in sorted(records, key=lambda one: one.repeat):
        groups.setdefault(record.question_id, []).append(record)
    scored = [[record for record in group if is_scored(record)] for group in groups.values()]
    k = min((len(group) for group in scored), default=0)
    if k < 2:
        return []
    wanted = sorted({one for one in ks if 1 < one < k} | {k})
    rows = [_row(head, f"pass@{one}", scored, partial(_passed, k=one)) for one in wanted]
    if kind == PROGRAMS or head.metric == PROGRAM_METRIC:
        return rows
    return [*rows, _row(head, f"maj@{k}", scored, partial(_voted, k=k))]


def _passed(group: Sequence[ItemRecord], k: int) -> float:
    return pass_at_k(len(group), sum(bool(record.correct) for record in group), k) or 0.0


def _voted(group: Sequence[ItemRecord], k: int) -> float:
    answers = [record.extracted for record in group]
    return float(bool(majority_at_k(answers, [bool(record.correct) for record in group], k)))


def _row(
    head: ResultRow, metric: str, groups: Sequence[Sequence[ItemRecord]], value: Callable[[Sequence[ItemRecord]], float]
) -> ResultRow:
    questions = [
        dataclasses.replace(group[0], item_id=group[0].question_id, value=value(group), correct=value(group) == 1.0)
        for group in groups
    ]
    found = score_interval(questions, graded=True)
    if found is None:
        raise ValueError("a row over repeats needs at least one question")
    return dataclasses.replace(
        head,
        metric=metric,
        value=100 * found.value,
        low=100 * found.low,
        high=100 * found.high,
        method=found.method,
        n=len(questions),
        expected=None,
    )
