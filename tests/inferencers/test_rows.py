from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dare_eval.inferencers.rows import content_digest, make_rows, rows_digest

ROWS = [{"question": "a", "answer": "1"}, {"question": "b", "answer": "2"}, {"question": "a", "answer": "1"}]


def ids(rows):
    return [row.item_id for row in rows]


def test_equal_rows_are_different_items_in_a_stable_order():
    rows = make_rows(ROWS, "d")
    assert len(set(ids(rows))) == 3
    assert ids(rows) == ids(make_rows(ROWS, "d"))
    assert ids(make_rows(ROWS[:2], "d")) == ids(rows)[:2]


def test_columns_that_opencompass_adds_do_not_matter():
    marked = [{**row, "subdivision": "abbr", "idx": i} for i, row in enumerate(ROWS)]
    assert ids(make_rows(marked, "d")) == ids(make_rows(ROWS, "d"))
    assert "idx" not in make_rows(marked, "d")[0].fields


def test_data_set_and_split_are_part_of_the_id():
    assert len({make_rows(ROWS, *where)[0].item_id for where in (("d",), ("e",), ("d", "dev"))}) == 3


def test_identity_columns_make_prompt_variants_the_same_items():
    first = [{**row, "prompt": f"Solve {i}"} for i, row in enumerate(ROWS[:2])]
    second = [{**row, "prompt": f"Please solve {i}"} for i, row in enumerate(ROWS[:2])]
    identity = ("question", "answer")
    assert ids(make_rows(first, "d", identity=identity)) == ids(make_rows(second, "d", identity=identity))
    assert ids(make_rows(first, "d")) != ids(make_rows(second, "d"))
    assert rows_digest(first) != rows_digest(second)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(1, 4))
def test_repeats_share_questions_and_never_ids(questions, repeats):
    rows = make_rows([{"q": q} for q in questions] * repeats, "d", questions=len(questions))
    assert len(set(ids(rows))) == len(rows)
    assert len({row.question_id for row in rows}) == len(questions)
    assert [row.repeat for row in rows] == [r for r in range(repeats) for _ in questions]
    assert ids(rows)[: len(questions)] == ids(make_rows([{"q": q} for q in questions], "d"))


def test_content_digest_sees_order_and_content():
    rows = make_rows(ROWS, "d")
    assert content_digest(rows) == content_digest(make_rows(ROWS, "d"))
    assert content_digest(rows) != content_digest(list(reversed(rows)))
