from __future__ import annotations

from contextlib import closing

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.inferencers.item_loop import ItemLoop, identity
from dare_eval.inferencers.item_store import ItemStore
from dare_eval.inferencers.rows import make_rows
from dare_eval.records.items import ItemRecord

ROWS = make_rows([{"question": number} for number in range(5)], "numbers")


def run(tmp_path, answers, check=None):
    with closing(ItemStore(tmp_path, "numbers", "numbers", "aaaa")) as store:
        return ItemLoop(store, ROWS, 2).run(answers, check)


def answer(batch):
    return [ItemRecord(**identity(ROWS[index]), response=str(index)) for index in batch]


def too_long(*numbers):
    def check(index):
        if index in numbers:
            raise DataError("too long", seen=f"{index} tokens", allowed="2", remedy="shorten it")

    return check


def test_an_item_that_cannot_work_ends_the_data_set_before_any_is_answered(tmp_path):
    answered = []
    with pytest.raises(DataError) as caught:
        run(tmp_path, lambda batch: answered.append(batch) or answer(batch), too_long(3, 4))
    assert str(caught.value).split("\n") == [
        "item 3 (and of 1 more): too long", "  seen:    3 tokens", "  allowed: 2", "  remedy:  shorten it",
    ]  # fmt: skip
    assert answered == []


def test_only_items_that_are_still_to_answer_are_looked_at(tmp_path):
    assert [record.response for record in run(tmp_path, answer)] == list("01234")
    assert len(run(tmp_path, answer, too_long(*range(5)))) == 5


def test_whatever_a_look_at_an_item_raises_names_the_item(tmp_path):
    def check(index):
        if index == 2:
            raise TypeError("TextEncodeInput")

    with pytest.raises(DataError, match="item 2: TypeError: TextEncodeInput") as caught:
        run(tmp_path, answer, check)
    assert isinstance(caught.value.__cause__.__cause__, TypeError)


def test_a_setting_that_is_wrong_for_every_item_is_no_fault_of_one(tmp_path):
    def check(index):
        raise UsageError("no decode settings")

    with pytest.raises(UsageError, match=r"^no decode settings$"):
        run(tmp_path, answer, check)
