from __future__ import annotations

import json
import random

import pytest

from dare_eval.errors import UsageError
from dare_eval.puzzles import list_ops
from dare_eval.scoring import score


def tasks(split="test", count=330, **options):
    return list_ops.generate(split, count, operations=list_ops.ALL_OPERATIONS, **options)


def test_every_operation_appears_and_its_answer_is_accepted():
    rng = random.Random(0)
    found = tasks()
    assert {task.operation for task in found} == set(list_ops.ALL_OPERATIONS)
    for task in found:
        answer = list_ops.one_answer(task, rng)
        assert task.accepts(answer), (task, answer)
        assert not task.accepts((*answer, answer[0]))
        assert not task.accepts(answer[:-1]) or task.operation == "remove_any"


def test_splits_share_no_list():
    parts = {split: {task.items for task in tasks(split, 2000, seed=1)} for split in list_ops.SPLITS}
    assert len(parts["train"]) == 2000
    assert not parts["train"] & parts["test"] and not parts["train"] & parts["validation"]
    assert not parts["test"] & parts["validation"]


def test_tasks_survive_the_reference():
    for task in tasks(count=60):
        assert list_ops.ListTask.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_lists_are_selections_without_repetition():
    for task in tasks(count=200, lengths=(2, 8)):
        assert 2 <= len(set(task.items)) == len(task.items) <= 8


@pytest.mark.parametrize(
    ("operation", "extra", "answer"),
    [
        ("copy", {}, "Ada Ben Cleo Dan"),
        ("reverse", {}, "Dan Cleo Ben Ada"),
        ("replace", {"old": "Ben", "new": "Kim"}, "Ada Kim Cleo Dan"),
        ("insert", {"old": "Ben", "new": "Kim"}, "Ada Ben Kim Cleo Dan"),
        ("remove", {"old": "Ben"}, "Ada Cleo Dan"),
        ("waiting_line", {"events": ["served", "Kim", "served"]}, "Cleo Dan Kim"),
    ],
)
def test_operations_with_one_answer(operation, extra, answer):
    reference = {"operation": operation, "items": ["Ada", "Ben", "Cleo", "Dan"], **extra}
    for written in (answer, answer.replace(" ", ", "), f"<answer>[{answer.replace(' ', ', ')}]</answer>"):
        assert score("list_ops", written, reference).correct
    assert not score("list_ops", "Ada Ada Ada Ada", reference).correct


@pytest.mark.parametrize(
    ("operation", "extra", "right", "wrong"),
    [
        ("shuffle", {}, "Ben Ada Cleo", ["Ada Ben Cleo", "Ben Ben Cleo", "Ben Ada"]),
        ("replace_any", {"new": "Kim"}, "Ada Kim Cleo", ["Ada Ben Cleo", "Kim Kim Cleo", "Kim Ada Ben Cleo"]),
        ("insert_any", {"new": "Kim"}, "Kim Ada Ben Cleo", ["Ada Ben Cleo", "Kim Ada Kim Cleo", "Ada Kim Cleo Ben"]),
        ("remove_any", {}, "Ada Cleo", ["Ada Ben Cleo", "Cleo Ada", "Ada Ada"]),
    ],
)
def test_free_operations_accept_every_right_answer(operation, extra, right, wrong):
    reference = {"operation": operation, "items": ["Ada", "Ben", "Cleo"], **extra}
    assert score("list_ops", right, reference).correct
    for answer in wrong:
        assert not score("list_ops", answer, reference).correct, answer


def test_a_damaged_answer_keeps_its_share_of_places_in_the_detail():
    found = score("list_ops", "Ada, Ben, Ben", {"operation": "copy", "items": ["Ada", "Ben", "Cleo"]})
    assert not found.correct and found.value == 0.0
    assert found.detail["in_place"] == pytest.approx(2 / 3)


def test_wrong_requests():
    with pytest.raises(UsageError, match="did you mean 'shuffle'"):
        list_ops.generate("test", 1, operations=["shufle"])
    with pytest.raises(UsageError, match="out of range"):
        list_ops.generate("test", 1, lengths=(1, 3))
    with pytest.raises(UsageError, match="only"):
        list_ops.generate("test", 10**6, lengths=(4, 4))
