import dataclasses
import json
import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.errors import DataError
from dare_eval.records.item_files import ItemWriter, read_items, write_items
from dare_eval.records.item_table import read_parquet, write_parquet
from dare_eval.records.items import ItemRecord, item_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
IDS = st.lists(st.integers(-1, 2**31), max_size=6).map(tuple)
RECORDS = st.builds(
    ItemRecord,
    item_id=st.text("0123456789abcdef", min_size=1, max_size=64),
    index=st.integers(-1, 10_000),
    repeat=st.integers(0, 3),
    prompt=st.text(),
    response=st.text(),
    extracted=st.none() | st.text(),
    rule=st.text(max_size=10),
    correct=st.none() | st.booleans(),
    value=st.none() | st.floats(0, 1),
    reference=JSON,
    detail=st.dictionaries(st.text(max_size=5), JSON, max_size=3),
    tokens=st.none() | IDS,
    step_map=st.none() | IDS,
    nfe=st.none() | st.integers(0, 9999),
    generated_tokens=st.none() | st.integers(0, 9999),
    wall_s=st.none() | st.floats(0, 1e6),
    edits=JSON,
    stop=st.none() | st.sampled_from(["eos", "length"]),
    error=st.none() | st.text(max_size=10),
    unrecorded=st.booleans(),
    upstream_correct=st.none() | st.booleans(),
    extra=st.dictionaries(st.text("xyz", min_size=1, max_size=4), JSON, max_size=2),
)


@given(st.lists(RECORDS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_files_give_back_what_was_written(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("items") / "model" / "data.jsonl"
    with ItemWriter(path) as writer:
        for record in records:
            writer.append(record)
    found = read_items(path)
    latest = {record.item_id: record for record in records}
    assert found.by_id == latest and not found.problems
    assert found.replaced == len(records) - len(latest)
    write_items(path, found.records)
    assert read_items(path).by_id == latest
    write_parquet(path.with_suffix(".parquet"), latest.values())
    assert read_parquet(path.with_suffix(".parquet")) == list(latest.values())


def test_awkward_text_survives():
    awkward = "line\u2028sep \x00 \ud800 =1+1 <b>&amp; 日本\r\n\\"
    record = ItemRecord(item_id="a", response=awkward, prompt=awkward)
    line = json.dumps(record.to_dict())
    assert ItemRecord.from_dict(json.loads(line)) == record


def test_item_id_separates_what_differs_and_nothing_else():
    row = {"question": "1+1", "answer": "2"}
    base = item_id("gsm8k", "test", row)
    assert base == item_id("gsm8k", "test", {"answer": "2", "question": "1+1"}) == item_id("gsm8k", "test", row, 0)
    others = [
        item_id("math", "test", row),
        item_id("gsm8k", "train", row),
        item_id("gsm8k", "test", row | {"answer": "3"}),
        item_id("gsm8k", "test", row, 1),
        item_id("gsm8k", "test", row, 2),
        item_id("gsm8", "ktest", row),
    ]
    assert len({base, *others}) == 1 + len(others)


def test_question_id_is_shared_by_repeats():
    first, second = item_id("a", "test", "q"), item_id("a", "test", "q", 1)
    assert ItemRecord(item_id=first).question_id == first
    record = ItemRecord(item_id=second, question_id=first, repeat=1)
    assert ItemRecord.from_dict(record.to_dict()).question_id == first


def test_with_decode_and_with_score_take_the_contract_fields():
    result = SimpleNamespace(
        tokens=[5, 6], nfe=4, nfe_by_block=[2, 2], generated_tokens=2, wall_s=0.5, step_map=[0, 1], edits=1, stop="eos"
    )  # fmt: skip
    score = SimpleNamespace(correct=True, value=1.0, extracted="7", rule="hash", detail={"k": 1})
    record = ItemRecord(item_id="a").with_decode(result).with_score(score)
    assert record.tokens == (5, 6) and record.nfe_by_block == (2, 2) and record.step_map == (0, 1)
    assert (record.nfe, record.generated_tokens, record.wall_s, record.stop) == (4, 2, 0.5, "eos")
    assert (record.correct, record.value, record.extracted, record.rule) == (True, 1.0, "7", "hash")


def test_every_bad_line_is_reported_with_its_text_and_the_good_ones_are_kept(tmp_path):
    path = tmp_path / "data.jsonl"
    good = [ItemRecord(item_id=name, response=name) for name in "abc"]
    with ItemWriter(path) as writer:
        writer.append(*good)
    future = '{"version":99,"item_id":"z","response":"<b>"}'
    bad = [
        "{not json",
        '["a list"]',
        future,
        '{"version":1,"response":"x"}',
        '{"version":1,"item_id":"q","nfe":"many"}',
    ]
    with path.open("a") as stream:
        stream.write("\n".join(bad) + '\n{"version":1,"item_id":"d","resp')
    found = read_items(path)
    assert found.records == good
    assert [p.text for p in found.problems] == [*bad, '{"version":1,"item_id":"d","resp']
    assert [p.kind for p in found.problems] == [
        "corrupt", "not a record", "unknown version", "not a record", "not a record", "half line"
    ]  # fmt: skip
    assert [p.line for p in found.problems] == [4, 5, 6, 7, 8, 9]


def test_invalid_utf8_is_a_problem_not_a_crash(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'\xff\xfe{"version":1}\n' + json.dumps(ItemRecord(item_id="a").to_dict()).encode() + b"\n")
    found = read_items(path)
    assert [record.item_id for record in found.records] == ["a"] and found.problems[0].kind == "corrupt"


def test_writer_moves_a_half_line_aside_and_goes_on(tmp_path):
    path = tmp_path / "data.jsonl"
    with ItemWriter(path) as writer:
        writer.append(ItemRecord(item_id="a"))
    with path.open("ab") as stream:
        stream.write(b'{"version":1,"item_id":"b","respo')
    with ItemWriter(path) as writer:
        writer.append(ItemRecord(item_id="c"))
    found = read_items(path)
    assert [record.item_id for record in found.records] == ["a", "c"] and not found.problems
    assert (tmp_path / "data.jsonl.damaged").read_bytes() == b'{"version":1,"item_id":"b","respo\n'


def test_writer_keeps_a_whole_record_that_only_lacks_its_line_end(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(ItemRecord(item_id="a").to_dict()))
    with ItemWriter(path) as writer:
        writer.append(ItemRecord(item_id="b"))
    assert [record.item_id for record in read_items(path).records] == ["a", "b"]


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "data.jsonl"
    with ItemWriter(path), pytest.raises(DataError, match="another process"):
        ItemWriter(path)
    ItemWriter(path).close()


def test_missing_file_names_the_remedy(tmp_path):
    with pytest.raises(DataError, match="missing"):
        read_items(tmp_path / "none.jsonl")


@pytest.mark.parametrize("field", ["value", "wall_s"])
def test_non_finite_numbers_are_refused(field):
    with pytest.raises(DataError, match=field):
        ItemRecord(item_id="a", **{field: float("nan")})


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ItemRecord(item_id="a").response = "x"  # type: ignore[misc]


def _write_for_ever(path):
    with ItemWriter(path) as writer:
        for number in range(10**6):
            writer.append(ItemRecord(item_id=f"{number:06d}", response="x" * 2000))


@pytest.mark.parametrize("delay_s", [0.05, 0.11, 0.23])
def test_kill_loses_no_finished_line(tmp_path, delay_s):
    path = tmp_path / "data.jsonl"
    process = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(path,))
    process.start()
    while not path.exists() or path.stat().st_size == 0:
        time.sleep(0.005)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    before = read_items(path)
    with ItemWriter(path) as writer:
        writer.append(ItemRecord(item_id="last"))
    after = read_items(path)
    assert [record.item_id for record in before.records] == [f"{n:06d}" for n in range(len(before.records))]
    assert after.records[:-1] == before.records and after.records[-1].item_id == "last" and not after.problems
