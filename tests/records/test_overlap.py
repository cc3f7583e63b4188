"""Contamination: each test finds what it is for, and only that."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dare_eval.records.overlap import NGRAM, normalise, overlap

LONG = "a train leaves the station at nine and arrives in the next town at half past eleven"


def test_strictest_match_is_reported():
    bench = ["What is 2+2?", "what is 3 + 3", LONG, "untouched question"]
    train = ["Intro. " + LONG.upper() + " and then?", "What is 2+2?", "WHAT IS 3+3!"]
    report = overlap(iter(train), bench)
    assert [(m.bench_index, m.train_index, m.test) for m in report.matches] == [
        (0, 1, "exact"),
        (1, 2, "normalised"),
        (2, 0, "ngram"),
    ]
    assert report.clean_indices == [3]
    assert (report.bench_items, report.train_texts) == (4, 3)


def test_one_word_short_of_the_run_is_no_match():
    words = LONG.split()
    assert overlap([" ".join(words[: NGRAM - 1])], [LONG]).matches == ()
    assert overlap([" ".join(words[:NGRAM])], [LONG]).count("ngram") == 1


@given(st.lists(st.text(max_size=60), max_size=8), st.lists(st.text(max_size=60), max_size=8))
def test_exact_matches_are_those_of_plain_equality(train, bench):
    report = overlap(train, bench)
    exact = {match.bench_index for match in report.matches if match.test == "exact"}
    assert exact == {i for i, text in enumerate(bench) if text in train}
    for match in report.matches:
        if match.test == "normalised":
            assert normalise(train[match.train_index]) == normalise(bench[match.bench_index]) != ""


def test_gsm8k_test_rows_that_share_text_with_train(dare_data):
    def questions(split):
        with (dare_data / f"data/gsm8k/{split}.jsonl").open() as lines:
            return [json.loads(line)["question"] for line in lines]

    report = overlap(questions("train"), questions("test"))
    assert report.count("exact") == report.count("normalised") == 0
    assert report.count("ngram") <= 3
