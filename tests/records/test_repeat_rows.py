import dataclasses

import pytest

from dare_eval.records.repeat_rows import repeat_rows
from dare_eval.records.stats import wilson
from dare_eval.records.summary import summarise
from tests.records.record_kit import records

VERDICTS = [[True, False, False], [False, False, False], [True, True, False], [True, True, True]]


def repeated(verdicts=VERDICTS):
    flat = records([right for group in verdicts for right in group])
    where = [(q, r) for q, group in enumerate(verdicts) for r in range(len(group))]
    return [
        dataclasses.replace(record, question_id=f"q{q}", repeat=r, extracted="right" if record.correct else f"wrong{r}")
        for record, (q, r) in zip(flat, where, strict=True)
    ]


def rows(found):
    return {row.metric: row for row in repeat_rows(found, summarise(found, model="m", dataset="d"))}


def test_pass_and_majority_have_one_value_per_question():
    found = rows(repeated())
    assert set(found) == {"pass@3", "maj@3"}
    assert (found["pass@3"].value, found["pass@3"].n) == (75.0, 4)
    assert found["pass@3"].low == pytest.approx(100 * wilson(3, 4).low)
    assert found["maj@3"].value == 75.0, "the first question's three answers are a tie, and the first one is right"


@pytest.mark.parametrize(("metric", "kind"), [("pass@1", "code"), ("pass@1", ""), ("accuracy", "code")])
def test_nobody_votes_on_programs(metric, kind):
    found = repeated()
    head = summarise(found, model="m", dataset="d", metric=metric)
    assert [row.metric for row in repeat_rows(found, head, kind=kind)] == ["pass@3"]


def test_the_smallest_number_of_answers_decides_k():
    uneven = rows(repeated([[True, False, False], [False, True]]))
    assert set(uneven) == {"pass@2", "maj@2"}
    assert uneven["pass@2"].value == pytest.approx(100 * (2 / 3 + 1) / 2)


def test_single_answers_have_no_such_rows():
    assert rows(records([True, False])) == {} and rows([]) == {}


def test_a_question_with_failed_answers_lowers_k():
    found = repeated()
    found[0] = dataclasses.replace(found[0], error="boom", correct=None)
    assert set(rows(found)) == {"pass@2", "maj@2"}
    found[1] = dataclasses.replace(found[1], error="boom", correct=None)
    assert rows(found) == {}
