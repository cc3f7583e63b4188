from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.scoring import UNPARSABLE_GOLD, score

READ = [
    ("The answer is (B).", "B", "answer_phrase"),
    ("answer is b", "B", "answer_phrase"),
    ("\u7b54\u6848\u662fC\u3002", "C", "answer_phrase"),
    ("\u6545\u9009B", "B", "answer_phrase"),
    ("\u7b54\u6848\uff1aD", "D", "answer_phrase"),
    ("The correct answer is **B. Paris**", "B", "answer_phrase"),
    ("The answer is D because A is wrong", "D", "answer_phrase"),
    ("The answer is A or B.", "A, B", "answer_phrase"),
    ("The answer is a good one. Answer: D", "D", "answer_phrase"),
    ("Since $A = \\pi r^2$, the answer is C.", "C", "answer_phrase"),
    ("The answer is: \\boxed{A}", "A", "box"),
    ("The answer is C. On reflection \\boxed{\\text{(D)}}", "D", "box"),
    ("\\boxed{A or B}", "A, B", "box"),
    ("<answer>\nB\n</answer>", "B", "answer_tag"),
    ("B", "B", "start"),
    ("(C) because", "C", "start"),
    ("\uff21. wide", "A", "start"),
    ("Since $A = 5$ we take (D)", "D", "mention"),
    ("Therefore, option C is correct.", "C", "mention"),
    ("I think\n\nC", "C", "last_line"),
    ("A good idea is to pick B", None, "no_answer"),
    ("Let A = 3 then 5", None, "no_answer"),
    ("", None, "no_answer"),
]


@pytest.mark.parametrize(("response", "extracted", "rule"), READ)
def test_what_is_read_and_by_which_rule(response, extracted, rule):
    found = score("choice", response, "A")
    assert (found.extracted, found.rule) == (extracted, rule)
    assert found.correct is (extracted == "A")


def test_the_text_of_an_option_counts_when_it_is_the_only_one():
    options = ["Rome", "Oslo", "Paris", "Paris, Texas"]
    assert score("choice", "Oslo.", "B", options=options).rule == "option_text"
    assert score("choice", "It must be Rome", "A", options=options).correct
    assert score("choice", "Rome or Oslo", "A", options=options).rule == "no_answer"


def test_letters_on_offer():
    assert score("choice", "The answer is H.", "H", choices=list("ABCDEFGHIJ")).correct
    assert score("choice", "The answer is H.", "A").rule == "no_answer"
    assert score("choice", "E", "E", options=["v", "w", "x", "y", "z"]).correct
    assert score("choice", "A", "F").rule == UNPARSABLE_GOLD
    with pytest.raises(UsageError, match="single letters"):
        score("choice", "A", "A", choices=["one", "two"])
