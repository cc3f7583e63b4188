from __future__ import annotations

import random

import pytest

from dare_eval.errors import UsageError
from dare_eval.puzzles import countdown
from dare_eval.scoring import score


def key(item):
    return tuple(sorted(item.numbers)), item.target


def test_the_problem_space_is_the_documented_one():
    problems = countdown.problems()
    assert len(problems) == 8480
    assert sum(len(problem.solutions) for problem in problems) / 8480 == pytest.approx(3.77, abs=0.01)
    assert len({(problem.numbers, problem.target) for problem in problems}) == 8480


def test_every_listed_solution_is_right_and_python_agrees():
    for problem in random.Random(0).sample(countdown.problems(), 400):
        for solution in problem.solutions:
            assert eval(solution) == problem.target
            assert sorted(int(part) for part in solution.split()[::2]) == list(problem.numbers)


def test_splits_are_disjoint_by_numbers_and_target():
    parts = {name: {key(problem) for problem in part} for name, part in countdown.splits().items()}
    assert {name: len(part) for name, part in parts.items()} == {
        "test": 400,
        "sft": 400,
        "rl": 7680,
        "validation": 400,
        "rl_tuning": 7280,
    }
    assert not parts["test"] & (parts["sft"] | parts["rl"])
    assert not parts["sft"] & parts["rl"]
    assert parts["validation"] | parts["rl_tuning"] == parts["rl"]
    assert not parts["validation"] & (parts["rl_tuning"] | parts["sft"])


def test_more_demonstrations_leave_test_and_validation_alone():
    few, many = countdown.splits(0, 400), countdown.splits(0, 6000)
    assert few["test"] == many["test"] and few["validation"] == many["validation"]
    assert (len(many["sft"]), len(many["rl"])) == (6000, 2080)


def test_items_show_all_numbers_and_a_right_demonstration():
    for item in countdown.generate("test", 100, seed=4):
        shown = {"numbers": list(item.numbers), "target": item.target}
        assert score("countdown", f"<answer>{item.solution}</answer>", shown).correct


def test_demonstrations_are_drawn_among_all_solutions_and_orders():
    problem = next(problem for problem in countdown.problems() if len(problem.solutions) >= 4)
    rng = random.Random(0)
    drawn = [countdown.present(problem, rng) for _ in range(200)]
    assert {item.solution for item in drawn} == set(problem.solutions)
    assert len({item.numbers for item in drawn}) > 1


def test_generation_repeats_with_its_seed():
    assert countdown.generate("rl", 20, seed=1) == countdown.generate("rl", 20, seed=1)
    assert countdown.generate("rl", 20, seed=1) != countdown.generate("rl", 20, seed=2)
    assert len(countdown.generate("sft")) == 400


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: countdown.generate("tests"), "did you mean 'test'"),
        (lambda: countdown.generate("test", 401), "holds 400"),
        (lambda: countdown.splits(0, 8480), "out of range"),
    ],
)
def test_wrong_requests_say_what_is_allowed(call, part):
    with pytest.raises(UsageError, match=part):
        call()
