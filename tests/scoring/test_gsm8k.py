from __future__ import annotations

import json

import pytest

from dare_eval.scoring import score

READ = [
    ("He has 70{,}000 dollars", "70000", "last_number"),
    ("He has 70\\,000 dollars", "70000", "last_number"),
    ("It costs $1,234,567.", "1234567", "last_number"),
    ("The answer is \u22123.", "-3", "answer_phrase"),
    ("10-3", "3", "last_number"),
    ("We get 10 - 3", "3", "last_number"),
    ("a profit of -$500", "-500", "last_number"),
    ("- 3 apples", "3", "last_number"),
    ("COVID-19", "19", "last_number"),
    ("the final answer is **73**, not 12", "73", "answer_phrase"),
    ("18.\n\n\n\nQ: new question? 5", "18", "last_number"),
    ("Question: restated?\nAnswer: 7", "7", "answer_phrase"),
    ("at 12:30", "12:30", "last_number"),
    ("on 5/12/2020", "5/12/2020", "last_number"),
    ("#### 18 (eighteen)", "18", "marker"),
    ("#### $42.00", "42", "marker"),
    ("#### The answer is 42", "42", "marker"),
    ("#### 1. Find the cost\nIt is 5.\n#### 2. Add\nThe answer is 8.", "8", "answer_phrase"),
    ("\\boxed{\\$12}", "12", "box"),
    ("\\boxed{5 \\times 3}", "15", "box_arithmetic"),
    ("\\boxed{14\\frac{1}{2}}", "14.5", "box_arithmetic"),
    ("\\boxed{30/2 = 15 eggs}", "15", "box"),
    ("\\boxed{15 \\text{ or } 16}", "15 \\text{ or } 16", "box_text"),
    ("\\boxed{...} but 26", "26", "last_number"),
    ("<answer>\n\\boxed{3}\n</answer", "3", "box"),
    ("<answer>5 apples</answer>", "5", "answer_tag"),
    ("\\boxed{3", None, "no_answer"),
    ("so 7 * 8 = 56\n<answer>\n\\boxed{296>", "296", "box_unclosed"),
    ("so 7 * 8 = 56\n<answer>\n\\boxed{$1,296 >\n", "1296", "box_unclosed"),
    ("36 left\n<answer>\n\\boxed{20\n</answer>", "20", "box_unclosed"),
    ("36 left\n<answer>\\boxed{\\frac{1}{2}</answer>", "0.5", "box_unclosed"),
    ("so $\\boxed{20$ of 36 eggs", "20", "box_unclosed"),
    ("so \\(\\boxed{20\\) of 36 eggs", "20", "box_unclosed"),
    ("36 so \\boxed{20 eggs at $2 each", "36", "last_number"),
    ("36 so \\boxed{3 + 5 > 2", "36", "last_number"),
    ("36 so \\boxed{\\frac{1}{2</answer>", "36", "last_number"),
    ("36 so \\boxed{20\n\nIt is 7$", "36", "last_number"),
    ("The answer is x = 12.", "12", "answer_phrase"),
    ("1e5 people", "100000", "last_number"),
    (", , ,", None, "no_answer"),
    ("eighteen", None, "no_answer"),
]


@pytest.mark.parametrize(("response", "extracted", "rule"), READ)
def test_what_is_read_and_by_which_rule(response, extracted, rule):
    found = score("gsm8k", response, "1")
    assert (found.extracted, found.rule) == (extracted, rule)


@pytest.mark.parametrize(
    "gold", ["70000", "70,000", "$70,000", "70000.0", 70000, "work\n#### 70,000", "\\boxed{70000}"]
)
def test_golds_are_cleaned_by_one_rule(gold):
    assert score("gsm8k", "70000", gold).correct


@pytest.mark.parametrize(
    ("response", "gold", "policy", "correct"),
    [
        ("25%", "25", {}, True),
        ("25%", "25", {"percent": "strict"}, False),
        ("25%", "0.25", {}, False),
        ("25%", "0.25", {"percent": "ratio"}, True),
        ("\\boxed{6", "6", {}, False),
        ("\\boxed{6", "6", {"truncated": "accept"}, True),
        ("\\boxed{5} and \\boxed{7}", "7", {}, False),
        ("\\boxed{5} and \\boxed{7}", "7", {"boxes": "last"}, True),
        ("\\boxed{5} and \\boxed{7}", "5", {"boxes": "first"}, True),
        ("33.33", "100/3", {}, False),
        ("33.33", "100/3", {"decimals": "rounded"}, True),
        ("33.34", "100/3", {"decimals": "rounded"}, False),
    ],
)
def test_policies(response, gold, policy, correct):
    assert score("gsm8k", response, gold, policy=policy).correct is correct


def test_masks_left_are_counted_and_do_not_join_digits():
    found = score("gsm8k", "The answer is 18<|mdm_mask|>0", "180")
    assert found.detail["masks_left"] == 1 and not found.correct


def test_golds_of_the_real_test_set_score_100(dare_data):
    rows = [json.loads(line) for line in (dare_data / "data/gsm8k/test.jsonl").read_text().splitlines()]
    assert all(score("gsm8k", row["answer"], row["answer"]).correct for row in rows)
    assert all(score("gsm8k", f"It is {row['answer'].split('#### ')[1]}.", row["answer"]).correct for row in rows)


def test_recorded_outputs_score_what_the_stock_evaluator_gives(dare_data):
    import gzip
    from collections import defaultdict

    golds = {
        row["id"]: row["answer"]
        for row in map(json.loads, (dare_data / "data/gsm8k/test.jsonl").read_text().splitlines())
    }
    right: dict[int, list[bool]] = defaultdict(list)
    with gzip.open(dare_data / "recorded/llada8b_instruct_gsm8k.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            right[row["gen_length"]].append(score("gsm8k", row["output"], golds[row["item"]]).correct)
    shares = {length: 100 * sum(verdicts) / len(verdicts) for length, verdicts in right.items()}
    for length, stock in {128: 71.9, 256: 78.8, 512: 79.4}.items():
        assert shares[length] == pytest.approx(stock, abs=1.0)
