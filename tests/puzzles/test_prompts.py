from __future__ import annotations

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.puzzles import list_ops, prompts, sudoku
from dare_eval.scoring import score

PUZZLE, SOLUTION = "1030041020030021", "1234341221434321"


@pytest.mark.parametrize("style", prompts.STYLES)
def test_every_style_shows_the_whole_problem(style):
    shown = prompts.sudoku_prompt(PUZZLE, style).text
    assert PUZZLE in shown.replace(" ", "")
    asked = prompts.countdown_prompt([3, 4, 5], 35, style).text
    assert all(part in asked for part in ("3", "4", "5", "35"))
    assert "{" not in shown and "{target}" not in asked and "{numbers}" not in asked


def test_equivalent_styles_differ_in_wording_and_agree_on_the_answer_form():
    for build in (lambda s: prompts.sudoku_prompt(PUZZLE, s), lambda s: prompts.countdown_prompt([1, 2], 3, s)):
        texts = [build(style).text for style in prompts.EQUIVALENT]
        assert len(set(texts)) == len(texts) >= 3
        assert all("<answer>" in text for text in texts)


def test_tiny_prompts_are_the_tokens_of_the_tiny_models():
    assert prompts.sudoku_prompt(PUZZLE, "tiny").text == "1 0 3 0 0 4 1 0 2 0 0 3 0 0 2 1"
    assert prompts.countdown_prompt([7, 3, 2], 23, "tiny").text == "7 3 2 = 23"
    task = list_ops.ListTask.from_dict({"operation": "insert", "items": ["Ada", "Ben"], "old": "Ada", "new": "Kim"})
    assert prompts.list_prompt(task, "tiny").text == "insert Ada Kim : Ada Ben"


def test_worked_examples_are_right_and_from_the_training_split():
    train = set(sudoku.split_solutions()["train"])
    shown = prompts.sudoku_prompt(PUZZLE, "spg").system
    assert len(prompts._SUDOKU_SHOTS) == 3
    for puzzle, solution in prompts._SUDOKU_SHOTS:
        assert sudoku.completions(puzzle) == [solution] and solution in train
        assert puzzle in shown and solution in shown


def test_the_examples_inside_countdown_prompts_are_right():
    for style in ("d1_train", "d1_eval", "spg"):
        shown = prompts.countdown_prompt([10, 20, 30], 60, style).text
        example = shown[shown.index("<answer>2") if "<answer>2" in shown else shown.index("<answer>\\boxed") :]
        assert score("countdown", example.partition("\n")[0].rstrip("."), 5, numbers=[2, 3, 4]).correct


def test_published_layouts():
    assert prompts.sudoku_prompt(PUZZLE, "d1_eval").prefix == "<reasoning>"
    assert "\\boxed{" in prompts.countdown_prompt([1, 2], 3, "d1_eval").user
    assert "\\boxed{" not in prompts.countdown_prompt([1, 2], 3, "d1_train").user
    assert prompts.sudoku_prompt(PUZZLE, "spg").system and not prompts.sudoku_prompt(PUZZLE, "d1_train").system


def test_a_style_from_a_file(tmp_path):
    path = tmp_path / "style.txt"
    path.write_text("You solve puzzles.\n---\nGrid {puzzle}, say \\boxed{16 digits}.\n---\n<think>\n")
    shown = prompts.sudoku_prompt(PUZZLE, prompts.from_file(path))
    assert (shown.system, shown.prefix) == ("You solve puzzles.", "<think>")
    assert shown.user == f"Grid {PUZZLE}, say \\boxed{{16 digits}}."
    path.write_text("a\n---\nb\n---\nc\n---\nd")
    with pytest.raises(DataError, match="too many parts"):
        prompts.from_file(path)
    with pytest.raises(DataError, match="cannot be read"):
        prompts.from_file(tmp_path / "none.txt")


def test_unknown_style():
    with pytest.raises(UsageError, match="did you mean 'plain'"):
        prompts.sudoku_prompt(PUZZLE, "plan")


@pytest.mark.parametrize("style", prompts.EQUIVALENT)
def test_list_prompts_show_list_and_arguments(style):
    for task in list_ops.generate("test", 22, operations=list_ops.ALL_OPERATIONS):
        shown = prompts.list_prompt(task, style).text
        assert all(item in shown for item in task.items) and task.old in shown and task.new in shown
        assert "  " not in shown and "{" not in shown
