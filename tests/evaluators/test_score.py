from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.evaluators.planning import malformed, planning_notes, planning_values
from dare_eval.records.items import ItemRecord
from dare_eval.scoring import score

pytestmark = pytest.mark.xdist_group("opencompass")
PUZZLE = {"puzzle": "1234341221434300", "solution": "1234341221434321"}
SOLVED, HALF, SHORT = "1234341221434321", "1234341221434331", "123"


def evaluator(**settings):
    from dare_eval.evaluators.score import ScoreEvaluator

    return ScoreEvaluator(**settings)


def test_result_has_metrics_in_percent_and_one_detail_per_item():
    judge = evaluator(kind="sudoku", presets=["d1_pad"])
    result = judge.score([SOLVED, HALF, SHORT], [PUZZLE] * 3)
    assert result["exact"] == pytest.approx(100 / 3)
    assert result["cell"] == pytest.approx(100 * 1.5 / 3)
    assert "cell_d1_pad" in result
    assert [detail["correct"] for detail in result["details"]] == [True, False, False]
    assert judge.score([], []) == {"details": []}


def test_countdown_valid_counts_expressions_over_the_given_numbers():
    problem = {"numbers": [2, 3, 4], "target": 14}
    replies = ["2 + 3 * 4", "2 * 3 + 4", "2 + 3", "hello"]
    result = evaluator(kind="countdown").score(replies, [problem] * 4)
    assert (result["exact"], result["valid"]) == (25, 50)


def test_unknown_kind():
    with pytest.raises(UsageError, match="sudoku"):
        evaluator(kind="sudoko")


def test_notes_print_the_trivial_baselines_beside_the_score():
    records = [
        ItemRecord(item_id=str(i), reference=PUZZLE).with_score(score("sudoku", reply, PUZZLE))
        for i, reply in enumerate((SOLVED, SHORT))
    ]
    (note,) = planning_notes("sudoku", records)
    for name in ("constant", "copy", "row-fill"):
        assert name in note
    assert malformed(records) == 1
    assert "10.0" in planning_notes("countdown", records)[0]
    assert planning_notes("gsm8k", records) == []
    assert planning_values("gsm8k", records) == {}
    assert malformed([ItemRecord(item_id="a")]) is None
