from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dare_eval.scoring import UNPARSABLE_GOLD, score
from dare_eval.scoring.math import guard, pool, ring
from dare_eval.scoring.math.pool import Pool, Verdict
from dare_eval.scoring.math.readable import is_readable
from dare_eval.scoring.math.structure import Comparison
from dare_eval.scoring.policy import DEFAULT

EQUAL = [
    ("0.5", r"\frac{1}{2}"),
    (r"\frac12", "1/2"),
    (r"3\frac{1}{2}", "3.5"),
    (r"{1\over 4}", "0.25"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}"),
    (r"\sqrt{50}", r"5\sqrt2"),
    (r"x(x+1)", r"x^2+x"),
    (r"10,\!080", r"7! \times 2!"),
    ("58,500", "58500"),
    (r"120^\circ", "120"),
    (r"\$18.90", "18.9"),
    (r"864 \mbox{ inches}^2", "864"),
    (r"5.4 \text{ cents}", "5.4"),
    (r"\{1,2\}", r"\{2,1\}"),
    ("1, 2", r"\{2,1\}"),
    (r"1 \pm \sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"),
    (r"\pm 2021", "-2021, 2021"),
    (r"(3,\infty)", "x>3"),
    ("[-1,4)", r"-1 \le x < 4"),
    (r"(-\infty,0)\cup(1,\infty)", r"(1,\infty)\cup(-\infty,0)"),
    (r"\begin{pmatrix} 16/49 \\ 48/49 \end{pmatrix}", r"\frac{16}{49}\begin{pmatrix} 1 \\ 3 \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", r"\begin{bmatrix} 1&0\\0&1 \end{bmatrix}"),
    ("40_9", "40_{9}"),
    ("40_9", "40"),
    ("2x+4y-3=0", r"y=-\frac{1}{2}x+\frac{3}{4}"),
    ("x^2+y^2=4", "x^2+y^2-4=0"),
    ("5", "x=5"),
    ("5", "a+b=5"),
    ("2x+1", "y=2x+1"),
    ("6+9i", "9i+6"),
    (r"\text{(C)}", "C"),
    (r"\text{Evelyn}", "evelyn"),
    ("3:4", "3:4"),
    (r"\infty", r"\infty"),
    (".2", "0.2"),
    (r"\frac{\sqrt3}{2}", "sqrt(3)/2"),
    ("x^{10}", "x**10"),
    (r"\dfrac{2469}{20,\!000}", "2469/20000"),
    (r"\frac\pi 2", "pi/2"),
    (r"\text{A,B}", "B, A"),
    ("xy", "yx"),
    ("1", r"\sin^2 x+\cos^2 x"),
    ("3", r"\log_2 8"),
    ("-1", r"e^{i\pi}"),
    (r"\frac{1}{2}", r"\int_0^1 x\,dx"),
    (r"x+1", r"\frac{x^2-1}{x-1}"),
]
UNEQUAL = [
    (r"\frac{1}{3}", "0.333"),
    (r"2\pi", "6.283185307"),
    (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
    ("2", ".2"),
    ("y = -1", r"\begin{pmatrix} 7 \\ -8 \end{pmatrix}"),
    ("gol(8)", "log(8)"),
    (", ".join(map(str, range(60))), ", ".join(map(str, [*range(59), 99]))),
    ("2021", r"\pm 2021"),
    (r"\pm 2021", "2021"),
    ("(1,2)", "(2,1)"),
    ("(1,2]", "(1,2)"),
    ("(1,2)", r"\{1,2\}"),
    (r"\{1,2\}", r"\{1,2,3\}"),
    ("5", r"5 \text{ or } 7"),
    ("5", "2x+3=5"),
    ("y=2x+3", "y=2x+1"),
    ("x=x", "0=0"),
    ("1:00", "12:00"),
    ("4:3", "3:4"),
    ("40_9", "40_8"),
    (r"50\%", "0.5"),
    (r"12\text{ m}", "12 cm"),
    (r"(-\infty,2)\cup(2,\infty)", r"(-\infty,\infty)"),
    (r"\text{east}", r"\text{west}"),
    ("0", ""),
    ("0", r"\frac{1}{0}"),
    ("6", "2 3"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 2 \\ 1 \end{pmatrix}"),
    ("9", r"9^{9^{9^{9}}}"),
    ("9", "100!!!!"),
    ("9", r"\sum_{k=1}^{10^9} k"),
    ("9", "7" * 5000),
]


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_answers(gold, answer):
    found = score("math", rf"so \boxed{{{answer}}}", gold)
    assert found.correct and found.value == 1.0, found


@pytest.mark.parametrize(("gold", "answer"), UNEQUAL, ids=[f"{a} {b}"[:40] for a, b in UNEQUAL])
def test_unequal_answers(gold, answer):
    assert not score("math", rf"so \boxed{{{answer}}}", gold).correct


READ = [
    (r"Thus \[ \boxed{\fbox{42}} \]", "42", "box"),
    (r"\boxed{3}, \boxed{5} and \boxed{7}", "3, 5, 7", "box_list"),
    (r"\boxed{5}. No: \boxed{7}", "7", "box"),
    (r"\boxed{7}, \boxed{7}", "7", "box"),
    (r"\boxed{} then $x = 3$", "x = 3", "last_formula"),
    ("<answer>5</answer>", "5", "answer_tag"),
    ("#### 12", "12", "marker"),
    ("The answer is $\\frac{1}{2}$, nothing else.", r"\frac{1}{2}", "answer_phrase"),
    ("**Answer:** 73", "73", "answer_phrase"),
    ("first \\(x\\), then \\(y^2\\).", "y^2", "last_formula"),
    ("The answer is .5", ".5", "answer_phrase"),
    ("x=5", "x=5", "whole_text"),
    (
        "It took a while, but in the end there are, as one sees, exactly 12 of them here\nand no more.",
        "12",
        "last_number",
    ),
    (r"Use \boxed. The answer is 6", "6", "answer_phrase"),
    (r"So it is 8. \boxed{9", "So it is 8.", "whole_text"),
    ("", None, "no_answer"),
]


@pytest.mark.parametrize(("response", "extracted", "rule"), READ)
def test_what_is_read_and_by_which_rule(response, extracted, rule):
    found = score("math", response, "x^{77}")
    assert (found.extracted, found.rule) == (extracted, rule)


@pytest.mark.parametrize(
    ("answer", "gold", "policy"),
    [
        ("0.333", r"\frac{1}{3}", {"decimals": "rounded"}),
        ("6.283", r"2\pi", {"decimals": "rounded"}),
        ("3.1416", r"\ln(e^{\pi})", {"decimals": "rounded"}),
        ("0.5", r"50\%", {"percent": "ratio"}),
        (r"50\%", "0.5", {"percent": "ratio"}),
    ],
)
def test_lenient_policies(answer, gold, policy):
    assert not score("math", rf"\boxed{{{answer}}}", gold).correct
    assert score("math", rf"\boxed{{{answer}}}", gold, policy=policy).correct


@pytest.mark.parametrize(
    ("answer", "gold", "policy"),
    [("50", r"50\%", {"percent": "strict"}), ("12 cm", "12", {"units": "strict"}), ("40", "40_9", {"units": "strict"})],
)
def test_strict_policies(answer, gold, policy):
    assert score("math", rf"\boxed{{{answer}}}", gold).correct
    assert not score("math", rf"\boxed{{{answer}}}", gold, policy=policy).correct


@pytest.mark.parametrize("gold", [r"336^\circ", "$336$", r"\boxed{336}", " 336 ", "336."])
def test_golds_are_cleaned_by_one_rule(gold):
    assert score("math", r"\boxed{336}", gold).correct


UNREADABLE = [r"\frac{\frac{", r"\frac{1}{", r"(3, \frac{\frac{)", r"x=\frac{", r"\{\sqrt[, 2\}"]
READABLE = [
    r"\text{Evelyn}", "12", r"\frac{1}{2}", r"\sin x + \cos 3x", r"(3, \frac{\pi}{2})", r"\left(-\infty, 3\right]",
    "x=5", "y = 2x+3", r"\sin x = 3y", "15:30", r"4210_{5}", r"\begin{pmatrix} 1 \\ \sin 2 \end{pmatrix}",
    r"1 < x \le \sqrt{2}", "2^{2014}", r"6 \text{ and } 7", r"3 \pm 2\sqrt{2}", r"\binom{10}{5}", r"\log_2 3", "AB",
    r"10,\!000",
]  # fmt: skip


@pytest.mark.parametrize("gold", UNREADABLE)
@pytest.mark.parametrize("answer", ["3", "GOLD", "", r"\frac{", "no idea"])
def test_a_gold_that_nothing_can_parse_is_counted_apart_whatever_the_answer(gold, answer):
    found = score("math", rf"so \boxed{{{answer.replace('GOLD', gold)}}}", gold)
    assert (found.rule, found.correct, found.value) == (UNPARSABLE_GOLD, False, 0.0)


@pytest.mark.parametrize("gold", READABLE)
@pytest.mark.parametrize("answer", [r"\boxed{\frac{}", r"\boxed{x^}", "", r"\boxed{7}"])
def test_a_gold_that_can_be_parsed_is_never_blamed_for_an_answer(gold, answer):
    assert score("math", answer, gold).rule != UNPARSABLE_GOLD


def test_a_gold_that_the_worker_had_no_time_for_is_asked_again():
    answers = [Verdict(False, "timeout"), Verdict(False, "gold not parsed")]
    asked = []

    def ask(gold):
        asked.append(gold)
        return answers[len(asked) - 1]

    assert [is_readable(r"\sin q", ask) for _ in range(3)] == [True, False, False]
    assert len(asked) == 2


def test_normal_form_agrees_with_floating_point():
    from hypothesis import given, settings
    from hypothesis import strategies as st

    leaf = st.integers(0, 30).map(str) | st.integers(1, 30).map(lambda n: rf"\sqrt{{{n}}}")
    tree = st.recursive(
        leaf,
        lambda inner: (
            st.builds(lambda a, b, op: f"({a}){op}({b})", inner, inner, st.sampled_from(["+", "-", r"\cdot "]))
            | st.builds(lambda a, b: rf"\frac{{{a}}}{{{b}}}", inner, st.integers(1, 9))
        ),
        max_leaves=6,
    )

    @settings(max_examples=200, deadline=None)
    @given(tree)
    def check(latex):
        form = ring.approximate(ring.parse(latex))
        plain = latex.replace(r"\cdot ", "*").replace(r"\frac", "FRAC").replace(r"\sqrt", "sqrt")
        while "FRAC" in plain:
            head, _, tail = plain.rpartition("FRAC")
            top_end = _closing(tail, 0)
            bottom_end = _closing(tail, top_end + 1)
            plain = f"{head}(({tail[1:top_end]})/({tail[top_end + 2 : bottom_end]})){tail[bottom_end + 1 :]}"
        value = eval(plain.replace("{", "(").replace("}", ")"), {"sqrt": lambda x: x**0.5})
        assert form == pytest.approx(value, rel=1e-9, abs=1e-9)

    check()


def _closing(text, start):
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
    raise AssertionError(text)


@pytest.mark.parametrize(
    "latex", ["9^{9^9}", "2^{99999}", "(5!)!", "9999!", "(3!)^{100}", "1" * 80, "x" + "+x" * 300, "2**3**4", "a!!"]
)
def test_the_guard_refuses_what_could_explode(latex):
    assert guard.refusal(latex)


@pytest.mark.parametrize("latex", [r"\frac{1}{2004!}", "x^{12}+1", r"\sqrt{2}^{10}", "2^{100}"])
def test_the_guard_lets_ordinary_answers_through(latex):
    assert guard.refusal(latex) is None


class Stuck:
    """A worker program that answers the start and then hangs, dies or answers, as the request says."""

    code = (
        "import json,os,sys,time\n"
        "print('{\"ready\": true}', flush=True)\n"
        "for line in sys.stdin:\n"
        "    word = json.loads(line)['pred']\n"
        "    time.sleep(600) if word == 'hang' else os._exit(9) if word == 'die' else None\n"
        "    print(json.dumps({'equal': True, 'why': str(os.getpid())}), flush=True)\n"
    )


@pytest.fixture
def stuck_pool(monkeypatch):
    start = subprocess.Popen

    def popen(command, **options):
        return start([sys.executable, "-c", Stuck.code], **options)

    monkeypatch.setattr(pool.subprocess, "Popen", popen)
    made = Pool(size=2)
    yield made
    made.shutdown()


def test_an_item_over_its_limit_costs_its_worker_and_nothing_else(stuck_pool):
    first = stuck_pool.equal("1", "ok").why
    assert stuck_pool.equal("1", "ok").why == first
    assert stuck_pool.equal("1", "hang", limit_s=0.3) == (False, "timeout")
    assert not Path(f"/proc/{first}").exists()
    assert stuck_pool.equal("1", "ok").equal
    assert stuck_pool.equal("1", "die") == (False, "died")
    assert stuck_pool.equal("1", "ok").equal


def test_threads_share_the_workers(stuck_pool):
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda word: stuck_pool.equal("1", word, limit_s=20), ["ok"] * 40))
    assert all(verdict.equal for verdict in found)
    assert len({verdict.why for verdict in found}) <= 2


def test_a_forked_child_gets_workers_of_its_own(stuck_pool):
    parent = stuck_pool.equal("1", "ok").why
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, stuck_pool.equal("1", "ok").why.encode())
        stuck_pool.shutdown()
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 100).decode() != parent
    os.close(reading)
    assert stuck_pool.equal("1", "ok").why == parent


def test_a_worker_that_cannot_start_is_a_setup_error(monkeypatch):
    from dare_eval.errors import SetupError

    start = subprocess.Popen
    monkeypatch.setattr(pool.subprocess, "Popen", lambda command, **o: start([sys.executable, "-c", "1/0"], **o))
    with pytest.raises(SetupError, match="did not start"):
        Pool().equal("1", "2")


def test_scoring_works_in_threads_with_the_real_worker():
    def compare(_):
        return score("math", r"\boxed{\sin^2 x + \cos^2 x}", "1").correct

    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(compare(0)))
    thread.start()
    thread.join()
    assert results == [True]


def test_the_path_says_how_an_answer_was_decided():
    asked = []

    def ask(gold, pred, **_):
        asked.append((gold, pred))
        return pool.Verdict(True, "compared")

    comparison = Comparison(DEFAULT, 1.0, ask)
    assert comparison.equal(r"\frac{1}{2}", "0.5") and asked == []
    assert comparison.equal("3", r"\log_2 8") and asked == [("3", r"\log_28")]
    assert comparison.path == ["exact", "sympy: compared"]


def golds(dare_data):
    rows = json.loads((dare_data / "data/math/test_prm800k_500.json").read_text()).values()
    return {row["id"]: row["solution"] for row in rows}


def test_golds_of_the_real_test_set_score_100(dare_data):
    for solution in golds(dare_data).values():
        assert score("math", f"I think {solution}.", solution).correct, solution


def test_recorded_outputs_agree_with_the_stock_evaluator(dare_data):
    """The stock evaluator (math-verify) gives 29.4 / 34.0 / 37.7; every item that differs was read by hand."""
    gold, right = golds(dare_data), {128: 0, 256: 0, 512: 0}
    with gzip.open(dare_data / "recorded/llada8b_instruct_math500.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            right[row["gen_length"]] += score("math", row["output"], gold[row["item"]]).correct
    for length, stock in {128: 29.4, 256: 34.0, 512: 37.7}.items():
        assert 100 * right[length] / 350 == pytest.approx(stock, abs=1.2)
