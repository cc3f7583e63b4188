"""Repeated answers with seeds of their own, and runs over a part of the data that say so."""

from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.runtime.limits import apply_limit, limit_of_environment, limited, subset_of

pytestmark = pytest.mark.xdist_group("opencompass")
REPEATED = """
from mmengine.config import read_base
with read_base():
    from dare_eval.configs.datasets.planning.sudoku4_gen import sudoku4_datasets as once
    from dare_eval.configs.models.tiny.tiny_sudoku import models
models[0]["decoding"] = dict(gen_length=16, block_length=16, steps=8, temperature=TEMPERATURE)
datasets = [dict(once[0], n=3, k=[1, 2], size=8)]
"""


def kept(test_range: str, total: int) -> list[int]:
    """Evaluate a range as OpenCompass does."""
    return eval(f"index_list{test_range}", {"index_list": list(range(total)), "total_size": total})


def test_repeats_draw_from_seeds_of_their_own(workplace):
    text = REPEATED.replace("TEMPERATURE", "2.0")
    done = workplace.run(workplace.config(text))
    assert done.code == 0, done.text
    records = done.records("tiny-sudoku", "sudoku4")
    assert len(records) == 24
    by_question: dict[str, list] = {}
    for record in records:
        by_question.setdefault(record.get("question_id", record["item_id"]), []).append(record)
    assert {len(answers) for answers in by_question.values()} == {3}
    differing = sum(len({record["response"] for record in answers}) > 1 for answers in by_question.values())
    assert differing >= 6
    again = workplace.run(workplace.config(f"{text}models[0]['batch_size'] = 5\n"), folder="other")
    assert [r["response"] for r in again.records("tiny-sudoku", "sudoku4")] == [r["response"] for r in records]
    rows = {row["metric"]: row for row in done.report}
    assert rows["exact"]["method"] == "clustered"
    assert (rows["exact"]["n"], rows["pass@2"]["n"], rows["pass@3"]["n"], rows["maj@3"]["n"]) == (24, 8, 8, 8)
    assert rows["exact"]["value"] <= rows["pass@2"]["value"] <= rows["pass@3"]["value"]
    solved = sum(any(record["correct"] for record in answers) for answers in by_question.values())
    assert rows["pass@3"]["value"] == pytest.approx(100 * solved / 8)


def test_greedy_repeats_agree(workplace):
    done = workplace.run(workplace.config(REPEATED.replace("TEMPERATURE", "0.0")))
    assert done.code == 0, done.text
    answers: dict[str, set] = {}
    for record in done.records("tiny-sudoku", "sudoku4"):
        answers.setdefault(record.get("question_id", record["item_id"]), set()).add(record["response"])
    assert {len(texts) for texts in answers.values()} == {1}


@pytest.mark.parametrize("total", [7, 20, 24])
def test_limit_keeps_the_first_questions_with_all_their_repeats(total):
    assert kept(limited(None, 3), total) == [0, 1, 2]
    assert kept(limited("[4:]", 2), total) == [4, 5]
    repeats = 4 if total % 4 == 0 else 1
    questions = total // repeats
    expected = [repeat * questions + number for repeat in range(repeats) for number in range(min(3, questions))]
    cut = limited(None, 3, repeats)
    assert kept(cut, total) == expected
    assert kept(f"{cut}[1:3]", total) == expected[1:3]  # as a part of a data set is cut
    assert kept(limited(None, 99, repeats), total) == list(range(total))


def test_limit_is_applied_once_to_shared_configs_and_named():
    one, other = {"reader_cfg": {}}, {"reader_cfg": {"test_range": "[5:9]"}, "n": 1}
    apply_limit([one, one, other], 2)
    assert (one["reader_cfg"]["test_range"], other["reader_cfg"]["test_range"]) == ("[:2]", "[5:9][:2]")
    assert subset_of(one) == "first 2"
    assert subset_of(other) == "range [5:9][:2]"
    assert subset_of({"reader_cfg": {}}) is None
    assert subset_of({"reader_cfg": {"test_range": limited(None, 2, 8)}}) == "first 2"


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5"])
def test_a_limit_that_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv("DARE_LIMIT", text)
    with pytest.raises(UsageError, match="DARE_LIMIT"):
        limit_of_environment()


def test_limit_of_plain_opencompass_is_shown(workplace):
    workplace.env["DARE_LIMIT"] = "2"
    done = workplace.run(workplace.config(REPEATED.replace("TEMPERATURE", "1.0")))
    assert done.code == 0, done.text
    row = done.row("exact")
    assert (row["n"], row["expected"]) == (6, 6)
    assert "subset: first 2" in row["labels"]
    assert "subset: first 2" in " ".join(done.out.split())
    workplace.env["DARE_LIMIT"] = "many"
    refused = workplace.run(workplace.config(REPEATED.replace("TEMPERATURE", "1.0")))
    assert refused.code == 2
    assert "DARE_LIMIT" in refused.text
