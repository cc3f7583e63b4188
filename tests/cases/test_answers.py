"""Cases of answer extraction, Countdown and Sudoku: every line, and every further line dropped in."""

from __future__ import annotations

import time

import pytest

from dare_eval.scoring import score
from tests.cases.case_lines import ids, lines

TEXT = lines("answer_extraction/gsm8k", "answer_extraction/math", "answer_extraction/choice")
COUNTDOWN = [*lines("countdown"), *(line for line in lines("training/rewards") if line["id"] == "C168")]
SUDOKU = lines("sudoku")
LIMIT_S = 10.0


@pytest.mark.parametrize("case", TEXT, ids=ids(TEXT))
def test_answer_extraction(case):
    given, expected = case["input"], case["expected"]
    kind = case["category"].partition("/")[2]
    extra = {key: given[key] for key in ("choices", "policy") if key in given}
    score(kind, "1", given["gold"], **extra)  # the first comparison may start a worker
    started = time.monotonic()
    found = score(kind, given["response"], given["gold"], **extra)
    assert time.monotonic() - started < LIMIT_S + 5  # the limit of an item, and room for a busy machine
    assert found.correct is expected["correct"], found
    assert found.value == float(expected["correct"])
    if "extracted" in expected:
        assert found.extracted == expected["extracted"], found


@pytest.mark.parametrize("case", COUNTDOWN, ids=ids(COUNTDOWN))
def test_countdown(case):
    given, expected = case["input"], case["expected"]
    response = given.get("response", given.get("same_text"))
    found = score("countdown", response, given["target"], numbers=given["numbers"], policy=given.get("policy"))
    for key in {"correct", "training_reward_correct", "evaluation_correct"} & expected.keys():
        assert found.correct is expected[key], found
    assert found.value == float(found.correct)


@pytest.mark.parametrize("case", SUDOKU, ids=ids(SUDOKU))
def test_sudoku(case):
    given, expected = case["input"], case["expected"]
    found = score("sudoku", given["response"], given["solution"], puzzle=given["puzzle"])
    assert found.correct is expected["solved"] is found.detail["solved"], found
    if "empty_cells_correct" in expected:
        share = expected["empty_cells_correct"]
        assert found.detail["empty_cells_correct"] == (None if share is None else pytest.approx(share))
        assert found.value == pytest.approx(1.0 if found.correct else share or 0.0)
