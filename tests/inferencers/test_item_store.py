from __future__ import annotations

import pytest

from dare_eval.errors import DataError
from dare_eval.inferencers.item_store import ItemStore, item_files, load_items, move_aside, store_items
from dare_eval.records.items import ItemRecord


def record(number, **values):
    return ItemRecord(item_id=f"item-{number}", index=number, response=str(number), **values)


def test_only_items_of_the_same_settings_count(tmp_path):
    store_items(tmp_path / "add.items.jsonl", [record(0), record(1)], "aaaa")
    store = ItemStore(tmp_path, "add", "add", "bbbb")
    assert store.done == {}
    store.append([record(2)])
    store.close()
    assert [r.index for r in load_items(tmp_path, "add", "bbbb")] == [2]
    assert (tmp_path / "add.items.jsonl.stale").exists()
    assert load_items(tmp_path, "add", "aaaa") == []


def test_failed_items_are_kept_but_not_done(tmp_path):
    store = ItemStore(tmp_path, "add", "add", "aaaa")
    store.append([record(0), record(1, error="ValueError: no")])
    store.close()
    again = ItemStore(tmp_path, "add", "add", "aaaa")
    assert set(again.done) == {"item-0"}
    again.append([record(1)])
    assert set(again.done) == {"item-0", "item-1"}
    again.close()


def test_parts_read_each_other_but_not_other_data_sets(tmp_path):
    store_items(tmp_path / "add_0.items.jsonl", [record(0)], "aaaa")
    store_items(tmp_path / "add_hard.items.jsonl", [record(7)], "aaaa")
    store = ItemStore(tmp_path, "add_1", "add", "aaaa")
    assert set(store.done) == {"item-0"}
    store.close()
    assert [path.name for path in item_files(tmp_path, "add")] == ["add_0.items.jsonl", "add_1.items.jsonl"]


def test_one_writer_at_a_time(tmp_path):
    first = ItemStore(tmp_path, "add", "add", "aaaa")
    with pytest.raises(DataError, match="another process"):
        ItemStore(tmp_path, "add", "add", "aaaa")
    first.close()
    ItemStore(tmp_path, "add", "add", "aaaa").close()


def test_a_process_that_does_not_write_keeps_its_items_in_memory(tmp_path):
    store = ItemStore(tmp_path, "add", "add", "aaaa", writes=False)
    store.append([record(0)])
    assert set(store.done) == {"item-0"}
    assert item_files(tmp_path, "add") == []


def test_without_a_fingerprint_nothing_is_resumed(tmp_path):
    store_items(tmp_path / "add.items.jsonl", [record(0)], "")
    store = ItemStore(tmp_path, "add", "add", "")
    assert store.done == {}
    store.close()


def test_moving_aside_never_overwrites(tmp_path):
    names = []
    for text in ("one", "two", "three"):
        (tmp_path / "x.json").write_text(text)
        names.append(move_aside(tmp_path / "x.json").name)
    assert names == ["x.json.stale", "x.json.stale2", "x.json.stale3"]
    assert (tmp_path / "x.json.stale").read_text() == "one"
    assert move_aside(tmp_path / "x.json") is None
