from __future__ import annotations

import gzip
import json

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.inferencers.rows import Row

pytestmark = pytest.mark.xdist_group("opencompass")

ROWS = [
    {"item": "q1", "gen_length": 128, "steps": 64, "output": "ANSWER 1<|eot_id|><|endoftext|>"},
    {"item": "q1", "gen_length": 256, "steps": 128, "output": "longer"},
    {"item": "q2", "gen_length": 128, "steps": 64, "output": "no end"},
]


def write(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def model(*arguments, **settings):
    from dare_eval.models.replay import ReplayModel

    return ReplayModel(*arguments, **settings)


def row(repeat=0, **fields):
    return Row("i", "q", 0, repeat, fields)


def ask(replay, prompt="?", **fields):
    return replay.generate([[{"role": "HUMAN", "prompt": prompt}]], rows=[row(**fields)])[0]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_one_length_is_served_by_id_and_end_marks_are_cut(tmp_path, name):
    replay = model(write(tmp_path / name, ROWS), gen_length=128)
    found = ask(replay, id="q1")
    assert found == "ANSWER 1"
    assert found.stats == {"nfe": 64, "stop": "eos"}
    assert ask(replay, id="q2").stats["stop"] == "length"
    assert ask(model(str(tmp_path / name), gen_length=256), id="q1") == "longer"


def test_question_text_in_the_last_human_turn_is_the_fallback(tmp_path):
    recorded = write(tmp_path / "r.jsonl", ROWS)
    asked = [{"id": "q1", "problem": "What is 1?"}, {"id": "q2", "problem": "What is 1? Also 2?"}]
    replay = model(recorded, gen_length=128, questions=write(tmp_path / "q.jsonl", asked))
    few_shot = [
        {"role": "HUMAN", "prompt": "What is 1? Also 2?"},
        {"role": "BOT", "prompt": "x"},
        {"role": "HUMAN", "prompt": "What is 1?\nThink."},
    ]
    assert replay.generate([few_shot])[0] == "ANSWER 1"
    assert ask(replay, prompt="Q: What is 1? Also 2?") == "no end", "the longest question that stands there"


def test_recordings_without_end_marks_say_nothing_about_how_they_ended(tmp_path):
    found = ask(model(write(tmp_path / "r.jsonl", [{"item": "a", "output": "b"}])), id="a")
    assert found.stats["stop"] is None


def test_items_without_a_recording_are_marked(tmp_path):
    found = ask(model(write(tmp_path / "r.jsonl", ROWS), gen_length=128), id="q9")
    assert found == ""
    assert found.stats == {"unrecorded": True}


def test_repeats_take_the_recordings_in_order(tmp_path):
    rows = [{"id": "a", "output": text} for text in ("one", "two")]
    replay = model(write(tmp_path / "r.jsonl", rows))
    assert [str(replay.generate(["?"], rows=[row(repeat, id="a")])[0]) for repeat in range(2)] == ["one", "two"]
    assert replay.generate(["?"], rows=[row(2, id="a")])[0].stats["unrecorded"]


@pytest.mark.parametrize(
    ("rows", "length", "part"),
    [
        (ROWS, None, "128, 256"),
        (ROWS, 512, "128, 256"),
        ([{"item": "a"}], None, "lacks"),
        ([{"output": "a"}], None, "lacks"),
        ([{"item": "a", "output": None}], None, "lacks"),
        ([], None, "is empty"),
        ([dict(ROWS[0], gen_length="128"), ROWS[1]], 512, "128, 256"),
    ],
)
def test_recordings_that_cannot_be_used(tmp_path, rows, length, part):
    with pytest.raises(DataError) as caught:
        model(write(tmp_path / "r.jsonl", rows), gen_length=length)
    assert part in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"item": "a", "output": "b"}\nnot json\n')
    with pytest.raises(DataError, match=r"bad\.jsonl:2"):
        model(str(tmp_path / "bad.jsonl"))
    with pytest.raises(DataError, match="cannot be read"):
        model(str(tmp_path / "absent.jsonl"))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"x" * 1000)[:15])
    with pytest.raises(DataError, match="cannot be read"):
        model(str(tmp_path / "cut.jsonl.gz"))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"5\n", "no JSON object"),
        (b'{"item": "a", "output": "\xff"}\n', "cannot be read"),
        (b'{"item": "a", "output": "b"}\n{"item": "c", "out', r"bad\.jsonl:2"),
    ],
)
def test_lines_that_are_no_recordings(tmp_path, content, part):
    (tmp_path / "bad.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=part):
        model(str(tmp_path / "bad.jsonl"))


def test_damaged_gzip(tmp_path):
    raw = bytearray(gzip.compress(json.dumps({"item": "a", "output": "b" * 99}).encode()))
    raw[20:30] = bytes(10)
    (tmp_path / "bad.jsonl.gz").write_bytes(raw)
    with pytest.raises(DataError, match="cannot be read"):
        model(str(tmp_path / "bad.jsonl.gz"))


def test_separators_and_marks_that_are_no_line_ends(tmp_path):
    text = "\ufeff" + json.dumps({"item": "a", "output": "one\u2028two\x85"}, ensure_ascii=False) + "\r\n"
    (tmp_path / "r.jsonl").write_bytes(text.encode())
    assert ask(model(str(tmp_path / "r.jsonl")), id="a") == "one\u2028two\x85"


def test_setting_that_does_not_exist(tmp_path):
    from dare_eval.models.replay import ReplayModel

    with pytest.raises(UsageError, match=r"gen_lenght.*gen_length"):
        ReplayModel.facts({"path": write(tmp_path / "r.jsonl", ROWS), "gen_lenght": 128})


def test_data_root_that_is_not_set(monkeypatch):
    monkeypatch.delenv("DARE_DATA", raising=False)
    with pytest.raises(DataError, match="DARE_DATA"):
        model("$DARE_DATA/recorded/x.jsonl")
