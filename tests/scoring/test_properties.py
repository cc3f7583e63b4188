from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.scoring import score
from tests.scoring.responses import CALLS, FRAGMENTS

TEXT = st.text(max_size=200) | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
NUMBER_KINDS = ("gsm8k", "math")
FAST_KINDS = ("gsm8k", "choice", "countdown", "sudoku", "list_ops", "instruction")


@pytest.mark.parametrize("kind", FAST_KINDS)
@settings(max_examples=150, deadline=None)
@given(text=TEXT)
def test_any_text_gets_a_score_and_the_same_one_again(kind, text):
    reference = CALLS[kind][0]
    found = score(kind, text, reference)
    assert isinstance(found.correct, bool) and 0.0 <= found.value <= 1.0 and found.rule
    assert json.loads(json.dumps(found.detail)) == found.detail
    assert score(kind, text, reference) == found


@settings(max_examples=60, deadline=None)
@given(text=TEXT)
def test_any_text_gets_a_mathematical_verdict(text):
    found = score("math", text, r"\frac{1}{2}", limit_s=5)
    assert isinstance(found.correct, bool) and found.rule
    assert score("math", text, r"\frac{1}{2}", limit_s=5) == found


DRESSINGS = (
    lambda answer: f"  \n{answer}\n\n ",
    lambda answer: f"\t{answer} \r\n",
    lambda answer: f"**{answer}**",
    lambda answer: f"{answer}<|eot_id|><|endoftext|><|endoftext|>",
    lambda answer: f"Some thoughts first.\n\n{answer}",
)


@pytest.mark.parametrize("dress", DRESSINGS, ids=["spaces", "tabs", "bold", "special tokens", "prose before"])
@pytest.mark.parametrize("kind", [*FAST_KINDS[:5], "math"])
def test_dressing_does_not_change_a_tagged_or_boxed_answer(kind, dress):
    reference, responses = CALLS[kind]
    for plain in responses:
        if "box" in plain or "answer" in plain or "####" in plain:
            bare, dressed = score(kind, plain, reference), score(kind, dress(plain), reference)
            assert (dressed.correct, dressed.extracted) == (bare.correct, bare.extracted), (plain, dressed)


@settings(max_examples=200, deadline=None)
@given(value=st.integers(-(10**9), 10**9), kind=st.sampled_from(NUMBER_KINDS))
def test_a_number_in_any_usual_spelling_equals_itself(value, kind):
    grouped = f"{value:,}"
    for spelt in (
        f"\\boxed{{{value}}}",
        f"The answer is {grouped}.",
        f"<answer>{value}.0</answer>",
        f"\\boxed{{{grouped}}}",
    ):
        assert score(kind, spelt, str(value)).correct, spelt
        assert not score(kind, spelt, str(value + 1)).correct, spelt


@settings(max_examples=100, deadline=None)
@given(numbers=st.lists(st.integers(1, 99), min_size=2, max_size=6), data=st.data())
def test_an_expression_over_the_numbers_reaches_exactly_its_value(numbers, data):
    signs = data.draw(st.lists(st.sampled_from("+-*"), min_size=len(numbers) - 1, max_size=len(numbers) - 1))
    written = str(numbers[0]) + "".join(f" {sign} {number}" for sign, number in zip(signs, numbers[1:], strict=True))
    target = eval(written)
    assert score("countdown", f"<answer>{written}</answer>", target, numbers=numbers).correct
    assert not score("countdown", f"<answer>{written}</answer>", target + 1, numbers=numbers).correct
    assert not score("countdown", f"<answer>{written}</answer>", target, numbers=[*numbers, 1]).correct


HUGE = {
    "digits": "7" * 30_000,
    "spaces": " " * 30_000 + "7",
    "brackets": "(" * 30_000,
    "open boxes": "\\boxed{" * 4_000,
    "open tags": "<answer>" * 3_500,
    "open maths": "\\(" * 15_000,
    "dollars": "$" * 30_001,
    "hashes": "#" * 30_000,
    "stars": "* " * 15_000,
    "fences": "```\n" * 7_001,
    "phrases": "answer is " * 3_000,
    "commas": "1," * 15_000,
    "colons": "1:" * 15_000,
    "square": "[" * 30_000,
    "newlines": "\n" * 30_000,
    "row labels": "row " * 7_000,
    "backslashes": "\\" * 30_000,
    "fractions": "\\frac{" * 15_000,
    "angles": "<" * 30_000,
    "over limit": "x" * 3_000_000 + " 7",
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_responses_take_linear_time(name):
    """Every scorer stays far from quadratic: thirty thousand characters within two CPU-seconds at the very most."""
    for kind, (reference, _) in CALLS.items():
        for text in (HUGE[name], f"<answer>{HUGE[name]}</answer>", f"\\boxed{{{HUGE[name]}}}"):
            started = time.process_time()
            score(kind, text, reference)
            assert time.process_time() - started < 2.0, kind
