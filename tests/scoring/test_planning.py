from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest

from dare_eval.errors import UsageError
from dare_eval.puzzles import sudoku
from dare_eval.scoring import UNPARSABLE_GOLD, score

PUZZLE, SOLUTION = "1030041020030021", "1234341221434321"
DRAWINGS = [
    "1234341221434321",
    "1 2 3 4 3 4 1 2 2 1 4 3 4 3 2 1",
    "1234\n3412\n2143\n4321",
    "1,2,3,4\n3,4,1,2\n2,1,4,3\n4,3,2,1",
    "[[1,2,3,4],[3,4,1,2],[2,1,4,3],[4,3,2,1]]",
    "| 1 | 2 | 3 | 4 |\n|---|---|---|---|\n| 3 | 4 | 1 | 2 |\n| 2 | 1 | 4 | 3 |\n| 4 | 3 | 2 | 1 |",
    "+---+---+\n|1 2|3 4|\n|3 4|1 2|\n+---+---+\n|2 1|4 3|\n|4 3|2 1|\n+---+---+",
    "Row 1: 1 2 3 4\nRow 2: 3 4 1 2\nRow 3: 2 1 4 3\nRow 4: 4 3 2 1",
    "\\begin{array}{cccc}1&2&3&4\\\\3&4&1&2\\\\2&1&4&3\\\\4&3&2&1\\end{array}",
    "```\n1234341221434321\n```",
    "\\boxed{1234341221434321}",
    "**1234341221434321**",
]


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_a_grid_may_be_drawn_in_any_usual_way(drawing):
    found = score("sudoku", f"So.\n<answer>{drawing}</answer>", SOLUTION, puzzle=PUZZLE)
    assert found.correct and found.extracted == SOLUTION and found.rule == "answer_tag"


def test_a_reply_that_is_only_a_grid_needs_no_tag():
    assert score("sudoku", "1 2 3 4 3 4 1 2 2 1 4 3 4 3 2 1", SOLUTION, puzzle=PUZZLE).rule == "whole_text"


def test_any_valid_completion_solves_and_only_one_that_keeps_the_givens():
    for stored in sudoku.completions("1000000000000000")[:5]:
        for answer in sudoku.completions("1000000000000000")[:5]:
            found = score("sudoku", f"<answer>{answer}</answer>", {"puzzle": "1" + "0" * 15, "solution": stored})
            assert found.correct and found.value == 1.0
    other = sudoku.completions("2000000000000000")[0]
    found = score("sudoku", f"<answer>{other}</answer>", sudoku.completions("1" + "0" * 15)[0], puzzle="1" + "0" * 15)
    assert not found.correct and found.detail["givens_kept"] is False


def test_partial_credit_is_the_share_of_empty_cells():
    found = score("sudoku", "<answer>1234341221434312</answer>", SOLUTION, puzzle="1234341221430000")
    assert (found.correct, found.value) == (False, 0.5)


@pytest.mark.parametrize("bad", ["15 cells", "123434122143432", "12343412214343211", "", "1234 3412 2143"])
def test_malformed_grids_are_worth_nothing(bad):
    found = score("sudoku", f"<answer>{bad}</answer>", SOLUTION, puzzle=PUZZLE)
    assert (found.value, found.detail["malformed"], found.detail["empty_cells_correct"]) == (0.0, True, None)


def test_policies_for_cut_and_untagged_grids():
    cut, loose = f"<answer>{SOLUTION}", f"Thus the grid is {SOLUTION}."
    assert not score("sudoku", cut, SOLUTION, puzzle=PUZZLE).correct
    assert score("sudoku", cut, SOLUTION, puzzle=PUZZLE, policy={"truncated": "accept"}).rule == "open_tag"
    assert not score("sudoku", loose, SOLUTION, puzzle=PUZZLE).correct
    assert score("sudoku", loose, SOLUTION, puzzle=PUZZLE, policy={"untagged": "accept"}).rule == "last_grid"


def test_padding_preset_pads_and_cuts():
    short = score("sudoku", "<answer>123434122143</answer>", SOLUTION, puzzle=PUZZLE, preset="d1_pad")
    assert short.detail["malformed"] and 0 < short.value < 1
    long = score("sudoku", f"<answer>{SOLUTION}1</answer>", SOLUTION, puzzle=PUZZLE, preset="d1_pad")
    assert long.value == 1.0 and not long.correct
    with pytest.raises(UsageError, match="d1_pad"):
        score("sudoku", "", SOLUTION, puzzle=PUZZLE, preset="d1_pda")


@pytest.mark.parametrize("gold", [{"puzzle": PUZZLE, "solution": "1" * 16}, {"puzzle": "12", "solution": SOLUTION}])
def test_a_stored_solution_that_does_not_solve_is_counted_apart(gold):
    assert score("sudoku", "", gold).rule == UNPARSABLE_GOLD


RIGHT = [
    ("<answer>3\u00d74+5</answer>", [3, 4, 5], 17),
    ("<answer>3 \\times 4 + 5</answer>", [3, 4, 5], 17),
    ("<answer>(3+4)*5 = 35</answer>", [3, 4, 5], 35),
    ("<answer>35 = (3+4)*5</answer>", [3, 4, 5], 35),
    ("<answer>$\\left(3+4\\right) \\cdot 5$</answer>", [3, 4, 5], 35),
    ("<answer>\\dfrac{20}{4}+3=8</answer>", [20, 4, 3], 8),
    ("<answer>**(3+4)*5**</answer>", [3, 4, 5], 35),
    ("<answer>[3+4] x 5</answer>", [3, 4, 5], 35),
    ("<answer>8/3*3</answer>", [8, 3, 3], 8),
    ("<answer>1/3+2/3</answer>", [1, 3, 2, 3], 1),
    ("<answer>(3 + 4) * 5 = 7 * 5 = 35</answer>", [3, 4, 5], 35),
    ("<answer>The expression is (3+4)*5.</answer>", [3, 4, 5], 35),
    ("So the answer is (3+4)*5 = 35.", [3, 4, 5], 35),
    ("5 * 19 - 3", [3, 5, 19], 92),
    ("\\boxed{10\u20134}", [10, 4], 6),
]
WRONG = [
    ("<answer>(3+4)*5 = 36</answer>", [3, 4, 5], 35),
    ("<answer>2**3</answer>", [2, 3], 8),
    ("<answer>7//2</answer>", [7, 2], 3),
    ("<answer>9^9</answer>", [9, 9], 3),
    ("<answer>5.0*7</answer>", [5, 7], 35),
    ("<answer>34+1</answer>", [3, 4, 1], 35),
    ("<answer>3+4+(4-4)</answer>", [3, 4], 7),
    ("<answer>(3+4)(5)</answer>", [3, 4, 5], 35),
    ("<answer>-3+10</answer>", [3, 10], 7),
    ("<answer>(3+4)*5", [3, 4, 5], 35),
    ("<answer>__import__('os').getpid()</answer>", [3], 3),
    ("<answer>3+4*5</answer> but (3+4)*5", [3, 4, 5], 35),
    ("I tried (3+4)*5 = 35 and then gave up.", [3, 4, 5], 35),
    ("<answer>" + "(" * 5000 + "3" + ")" * 5000 + "</answer>", [3], 3),
    ("<answer>" + "9*" * 5000 + "9</answer>", [9], 9),
]


@pytest.mark.parametrize(("response", "numbers", "target"), RIGHT)
def test_right_expressions(response, numbers, target):
    found = score("countdown", response, target, numbers=numbers)
    assert found.correct and found.value == 1.0, found


@pytest.mark.parametrize(("response", "numbers", "target"), WRONG, ids=[row[0][:40] for row in WRONG])
def test_wrong_expressions_say_why(response, numbers, target):
    found = score("countdown", response, target, numbers=numbers)
    assert not found.correct and found.value == 0.0 and found.detail["reason"], found


@pytest.mark.parametrize(
    ("response", "numbers", "target", "policy"),
    [
        ("<answer>-3+10</answer>", [3, 10], 7, {"unary_minus": True}),
        ("<answer>(3+4)(5)</answer>", [3, 4, 5], 35, {"juxtaposition": True}),
        ("<answer>(3+4)*5 = 36</answer>", [3, 4, 5], 35, {"false_equation": "accept"}),
        ("<answer>(3+4)*5", [3, 4, 5], 35, {"truncated": "accept"}),
        ("I tried (3+4)*5 = 35 and then gave up.", [3, 4, 5], 35, {"untagged": "accept"}),
    ],
)
def test_countdown_policies(response, numbers, target, policy):
    assert not score("countdown", response, target, numbers=numbers).correct
    assert score("countdown", response, target, numbers=numbers, policy=policy).correct


def test_numbers_and_target_may_come_as_text():
    for reference in ('{"numbers": [3, 4, 5], "target": 35}', {"numbers": "[3, 4, 5]", "target": "35"}):
        assert score("countdown", "<answer>(3+4)*5</answer>", reference).correct


def shares(dare_data, name, key, **context):
    tests = (dare_data / f"planning/{name}_test.jsonl").read_text().splitlines()
    items = {row["id"]: row for row in map(json.loads, tests)}
    found = defaultdict(list)
    with gzip.open(dare_data / f"recorded/llada8b_instruct_{name}.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            found[row["gen_length"]].append(key(score(name, row["output"], items[row["item"]], **context)))
    return found


def test_recorded_countdown_outputs(dare_data):
    found = shares(dare_data, "countdown", lambda scored: scored.value)
    for length, published in {128: 22.5, 256: 23.0, 512: 16.9}.items():
        assert 100 * sum(found[length]) / len(found[length]) == pytest.approx(published, abs=0.6)


def test_recorded_sudoku_outputs_under_the_published_padding(dare_data):
    found = shares(dare_data, "sudoku", lambda scored: scored.value, preset="d1_pad")
    for length, published in {128: 12.3, 256: 5.6, 512: 5.5}.items():
        assert 100 * sum(found[length]) / len(found[length]) == pytest.approx(published, abs=0.6)


def test_recorded_sudoku_outputs_that_are_malformed(dare_data):
    found = shares(dare_data, "sudoku", lambda scored: scored.detail["malformed"])
    assert {length: sum(flags) for length, flags in found.items()} == {128: 74, 256: 108, 512: 110}
