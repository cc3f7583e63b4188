"""Tasks: every kind of problem from generators, clean files and verl's layout; bad rows named or counted."""

from __future__ import annotations

import json

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.scoring import score
from dare_train.config import ModelSettings
from dare_train.rl.config import TaskSettings
from dare_train.rl.problems import read_problems
from dare_train.setup import plan_model


@pytest.fixture(scope="module")
def plan():
    return plan_model(ModelSettings(base="tiny-countdown"))


def written(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_tiny_countdown_prompts_are_those_of_evaluation(plan):
    rows = read_problems(plan, TaskSettings(task="countdown", train="puzzles/countdown[rl_tuning:5,validation:3]"))
    assert len(rows.kept) == 5 and len(rows.heldout) == 3
    first = rows.kept[0]
    numbers, target = first.reference["numbers"], first.reference["target"]
    assert first.text == " ".join(map(str, numbers)) + f" = {target}"
    assert first.prompt == tuple(
        plan.tokenizer(f"<bos><user> {first.text} <assistant> ", add_special_tokens=False)["input_ids"]
    )
    assert rows.record["held_out"] == {"puzzles/countdown[validation:3]": 3}


ROWS = {
    "countdown": ({"numbers": [3, 4, 5], "target": 35}, "<answer>(3+4)*5</answer>"),
    "sudoku": ({"puzzle": "3102200002100320", "solution": "3142243142131324"}, "<answer>3142243142131324</answer>"),
    "gsm8k": ({"question": "What is 2 + 2?", "answer": "It is 4.\n#### 4"}, "The answer is 4"),
    "math": ({"problem": "What is 1/2 + 1/2?", "solution": "So \\boxed{2}... no, \\boxed{1}."}, "\\boxed{1}"),
    "code": (
        {"text": "Add two.", "test_list": ["assert add(1, 2) == 3"]},
        "```python\ndef add(a, b): return a + b\n```",
    ),
}
VERL = {
    "countdown": {"extra_info": {"numbers": "[3, 4, 5]"}, "reward_model": {"ground_truth": "35", "style": "rule"}},
    "gsm8k": {"reward_model": {"ground_truth": "4"}},
    "math": {"reward_model": {"ground_truth": "1"}},
}


@pytest.mark.parametrize("task", ROWS)
def test_rows_of_a_file_become_problems_whose_right_answer_scores(plan, tmp_path, task):
    row, right = ROWS[task]
    [problem] = read_problems(plan, TaskSettings(task=task, train=written(tmp_path, row))).kept
    if task == "code":
        assert problem.reference == row["test_list"] and "assert add(1, 2) == 3" in problem.text
        return
    assert score(problem.scorer, right, problem.reference, **problem.context).correct


@pytest.mark.parametrize("task", VERL)
def test_verl_rows_keep_their_own_prompt(plan, tmp_path, task):
    row = {"prompt": [{"role": "user", "content": "1 2 3"}], "data_source": "x", **VERL[task]}
    [problem] = read_problems(plan, TaskSettings(task=task, train=written(tmp_path, row))).kept
    assert problem.text == "1 2 3"
    assert score(problem.scorer, ROWS[task][1], problem.reference, **problem.context).correct


def test_humaneval_rows_and_a_shot_with_the_assistants_start(plan, tmp_path):
    row = {
        "task_id": "HumanEval/0",
        "prompt": "def f(x):\n",
        "test": "def check(c): assert c(1) == 1",
        "entry_point": "f",
    }
    [problem] = read_problems(plan, TaskSettings(task="code", train=written(tmp_path, row))).kept
    assert problem.key == "HumanEval/0" and problem.context["entry_point"] == "f" and "def f(x):" in problem.text
    turns = [{"role": "user", "content": "1 2"}, {"role": "assistant", "content": "[BEGIN]"}]
    row = {"prompt": turns, "reward_model": {"ground_truth": "assert True"}}
    [problem] = read_problems(plan, TaskSettings(task="code", train=written(tmp_path, row))).kept
    assert problem.text == "1 2"


def test_bad_rows_are_named_or_counted_and_columns_renamed(plan, tmp_path):
    train = written(tmp_path, {"q": "2", "answer": "4"}, {"q": "3"})
    settings = {"task": "gsm8k", "train": train, "fields": {"question": "q"}}
    with pytest.raises(DataError, match=r"row 1 .* 'answer' is missing"):
        read_problems(plan, TaskSettings(**settings))
    found = read_problems(plan, TaskSettings(**settings, on_bad_row="skip"))
    assert len(found.kept) == 1 and sum(found.record["skipped"].values()) == 1
    with pytest.raises(DataError, match="too long"):
        read_problems(plan, TaskSettings(**settings, max_prompt=2))
    with pytest.raises(UsageError, match="countdownn"):
        read_problems(plan, TaskSettings(task="countdownn", train=train))


def test_real_rows(plan, dare_data):
    for task, path in (("gsm8k", "data/gsm8k/train.jsonl"), ("math", "rl/math_train.jsonl")):
        rows = read_problems(plan, TaskSettings(task=task, train=f"{dare_data / path}[train:20]", max_prompt=9999))
        assert len(rows.kept) == 20


def test_a_row_is_named_by_its_place_in_the_file_and_too_few_rows_are_told(plan, tmp_path):
    good = {"numbers": [3, 4, 5], "target": 35}
    wrong = ({"numbers": [1]}, {"numbers": ["x"], "target": 1}, {"numbers": [1], "target": []})
    path = written(tmp_path, good, good, *wrong)
    with pytest.raises(DataError, match=r"row 2 of .*validation:1"):
        read_problems(plan, TaskSettings(task="countdown", train=f"{path}[train:2,validation:1]"))
    for index in (3, 4):
        with pytest.raises(DataError, match=rf"row {index} of [\s\S]*does not hold what the task expects"):
            read_problems(plan, TaskSettings(task="countdown", train=f"{path}[test_a:{index},train:1]"))
    path = written(tmp_path, good, good)
    with pytest.raises(DataError, match="fewer rows than asked for"):
        read_problems(plan, TaskSettings(task="countdown", train=f"{path}[train:9]"))


def test_the_start_of_a_reply_stands_in_the_prompt_and_is_judged_with_it(plan, tmp_path):
    from types import SimpleNamespace

    from dare_train.rl.records import answer_of

    settings = {"task": "countdown", "train": written(tmp_path, ROWS["countdown"][0]), "max_prompt": 9999}
    [plain] = read_problems(plan, TaskSettings(**settings, style="plain")).kept
    [started] = read_problems(plan, TaskSettings(**settings, style="d1_eval")).kept
    assert plain.prefix == "" and started.prefix == "<reasoning>"
    ids = plan.tokenizer(started.prefix, add_special_tokens=False)["input_ids"]
    assert list(started.prompt[-len(ids) :]) == ids
    rollout = SimpleNamespace(problem=started, text="x", result=SimpleNamespace(generated_tokens=1))
    assert answer_of(rollout, SimpleNamespace(gen_length=4)).response == "<reasoning>x"
