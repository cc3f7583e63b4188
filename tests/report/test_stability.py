"""Answer stability on made-up records whose history is known."""

import dataclasses
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.errors import DataError
from dare_eval.records.items import ItemRecord
from dare_eval.report.stability import (
    GAP,
    NONE_YET,
    X0_KEY,
    Answer,
    answers_by_forward,
    flip_rate,
    flips_of,
    item_stability,
    left_to_rightness,
    stability,
    states,
    text_of,
)
from dare_eval.report.stability_file import NAME, read_stability, write_stability


def read(tokens):
    return " ".join(map(str, tokens))


def judge(text, record):
    """The answer is the last whole number of the text."""
    numbers = [part for part in text.split() if part.lstrip("-").isdigit()]
    found = numbers[-1] if numbers else None
    return Answer(found, found == record.reference)


def record(tokens=(4, 5, 6), steps=(0, 1, 2), *, reference="6", nfe=None, **fields):
    last = str(tokens[-1]) if tokens else None
    base = {"item_id": "a", "tokens": tokens, "step_map": steps, "nfe": nfe or max(steps, default=0) + 1}
    base |= {"response": read(tokens), "reference": reference, "extracted": last, "correct": last == reference}
    return ItemRecord(**(base | fields))


def test_states_are_what_was_committed_after_each_forward():
    assert list(states(record(steps=(1, 0, 2)))) == [[-1, 5, -1], [4, 5, -1], [4, 5, 6]]
    assert list(states(record(steps=(0, 0, 0), nfe=2))) == [[4, 5, 6]] * 2
    assert list(states(record(steps=(0, -1, 0)))) == [[4, -1, 6]], "never revealed"
    padded = record(tokens=(4, 5), steps=(1, 0, 0, 0), reference="5", nfe=2)
    assert list(states(padded)) == [[-1, 5], [4, 5]], "the step map covers padding behind the response"


def test_edits_are_undone_backwards():
    edited = record(tokens=(4, 9), steps=(0, 0), nfe=4, edits=[[3, 1, 8, 9], [1, 1, 7, 8]], reference="9")
    assert list(states(edited)) == [[4, 7], [4, 8], [4, 8], [4, 9]]


def test_gaps_stand_between_pieces_and_the_last_one_is_dropped():
    assert text_of([1, 2, NONE_YET, NONE_YET, 3, NONE_YET], read) == f"1 2 {GAP} 3"
    assert text_of([NONE_YET, 3], read) == f"{GAP} 3" and text_of([NONE_YET], read) == "" and text_of([], read) == ""


def test_the_forward_of_the_last_change_and_what_was_spent_after_it():
    found = item_stability(record(steps=(2, 1, 0), nfe=5), read, judge)
    assert (found.last_change, found.spent_after, found.first_right, found.lost) == (0, 4, 0, False)
    found = item_stability(record(steps=(0, 1, 2)), read, judge)
    assert (found.last_change, found.spent_after, found.first_right) == (2, 0, 2)


def test_right_and_then_lost():
    wrong = record(tokens=(6, 5), steps=(0, 1))
    found = item_stability(wrong, read, judge)
    assert (found.right, found.first_right, found.lost, found.last_change) == (False, 0, True, 1)
    never = item_stability(record(tokens=(7, 5), steps=(0, 1)), read, judge)
    assert (never.first_right, never.lost) == (None, False)


def test_x0_records_show_the_guess_before_it_is_committed():
    guess = [[0, [[0, 4], [1, 5], [2, 9]]], [2, [[2, 6]]]]
    found = record(steps=(0, 1, 3), extra={X0_KEY: guess})
    assert list(states(found)) == [[4, 5, 9], [4, 5, 9], [4, 5, 6], [4, 5, 6]]
    judged = item_stability(found, read, judge)
    assert (judged.last_change, judged.spent_after, judged.first_right) == (2, 1, 2)
    shorter = record(
        tokens=(4,), steps=(0, 0), nfe=2, reference="4", extra={X0_KEY: [[0, [[0, 4], [1, 5]]], [1, [[1, -1]]]]}
    )
    assert list(states(shorter)) == [[4, 5], [4]], "the guess became shorter"


def test_a_response_that_does_not_read_as_recorded_is_left_out_and_counted():
    odd = dataclasses.replace(record(), extracted="other")
    assert item_stability(odd, read, judge).last_change is None
    found = stability("m", "d", [record(), odd, dataclasses.replace(record(), item_id="b")], read, judge)
    assert (found.n, found.unread, found.oracle_right.n) == (3, 1, 2)


def test_the_answer_of_the_last_forward_is_that_of_the_response():
    cut = record(tokens=(4, 5, 6, 7), steps=(0, 1, 2, 3), response="4 5 6", extracted="6", correct=True)
    assert answers_by_forward(cut, read, judge)[-1] == Answer("6", True), "a stop text cut it"


@given(st.lists(st.integers(0, 6), min_size=0, max_size=12))
@settings(max_examples=150, deadline=None)
def test_left_to_rightness_counts_pairs(steps):
    pairs = [(a, b) for a, b in itertools.combinations(steps, 2) if a != b]
    expected = sum(a < b for a, b in pairs) / len(pairs) if pairs else None
    found = left_to_rightness(steps, len(steps))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_left_to_rightness_looks_at_the_response_only():
    assert left_to_rightness([0, 1, 2, 0, 0], 3) == 1.0 and left_to_rightness([2, 1, 0], 3) == 0.0
    assert left_to_rightness([0, 0], 2) is None and left_to_rightness(None, 2) is None


def test_flip_rate_is_the_share_of_disagreeing_pairs_per_question():
    def answers(question, verdicts):
        return [
            ItemRecord(item_id=f"{question}{k}", question_id=question, repeat=k, correct=right, value=float(right))
            for k, right in enumerate(verdicts)
        ]

    found = flip_rate([*answers("p", [True, False, False, False]), *answers("q", [True] * 4), *answers("r", [False])])
    assert found.value == pytest.approx((3 / math.comb(4, 2) + 0) / 2) and found.n == 2
    assert flip_rate(answers("p", [True])) is None
    same = flips_of({str(k): [True, True] for k in range(20)})
    assert same.value == 0.0 and same.high > 0.1, "no flip among few questions is no certainty"


def test_without_a_reader_only_the_order_is_known():
    found = stability("m", "d", [record(), dataclasses.replace(record(), item_id="b")], None, None)
    assert found.last_change is None and found.unread == 2 and found.left_to_right.value == 1.0
    assert stability("m", "d", [ItemRecord(item_id="a", correct=True)], read, judge).n == 0


def test_the_file_gives_back_what_was_written_and_keeps_other_results(tmp_path):
    many = [dataclasses.replace(record(), item_id=str(k)) for k in range(5)]
    first, second = (stability("m", name, many, read, judge) for name in ("d", "e"))
    write_stability(tmp_path, [first])
    write_stability(tmp_path, [second])
    assert read_stability(tmp_path) == [first, second]
    assert read_stability(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 9}', '{"version": 1}', '{"version": 1, "results": [{"a": 1}]}']
)
def test_damaged_files_are_data_errors(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(DataError):
        read_stability(tmp_path)
