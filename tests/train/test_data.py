"""Rows, rendering, order and batches."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dare_eval.errors import DataError, SetupError, UsageError
from dare_train.config import DataSettings
from dare_train.data.batches import RowOrder, collate
from dare_train.data.prepared import write_prepared
from dare_train.data.render import Example, Renderer
from dare_train.data.rows import Row, SkippedRows, UnreachableError, read_rows
from dare_train.data.spec import Selection, parse_sources, separate
from dare_train.data.tokenizer import build_puzzle_tokenizer

TOKENIZER = build_puzzle_tokenizer()
LLADA_LIKE = (
    "{% for m in messages %}<user> {{ m['content'] | trim }} <eos>{% endfor %}<assistant> "  # header always follows
)


def settings(**changes):
    return DataSettings(**{"train": "puzzles/sudoku", **changes})


def render(row, **changes):
    return Renderer(TOKENIZER, settings(**changes), frozenset([TOKENIZER.eos_token_id])).row(row)


def row(answer="3 + 4", prompt="3 4 = 7"):
    return Row(({"role": "user", "content": prompt},), answer, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("puzzles/sudoku", [Selection("puzzles/sudoku")]),
        ("a.jsonl[train:10]", [Selection("a.jsonl", "train", 10)]),
        ("a/b/c[train:10,test:5]", [Selection("a/b/c", "train", 10), Selection("a/b/c", "test", 5)]),
        ("a + b[x]", [Selection("a"), Selection("b", "x")]),
        ("a.jsonl[train:10,test:5]", [Selection("a.jsonl", "train", 10), Selection("a.jsonl", "test", 5, 10)]),
        ("a.jsonl[test:5,x]", [Selection("a.jsonl", "test", 5), Selection("a.jsonl", "x", None, 5)]),
        (
            "a.jsonl[x:2]+a.jsonl[x:3,y:4]",
            [Selection("a.jsonl", "x", n) for n in (2, 3)] + [Selection("a.jsonl", "y", 4, 3)],
        ),
    ],
)
def test_sources(text, expected):
    assert parse_sources(text) == expected


MALFORMED = ["", "a[", "a[train:x]", "a[train:0]", "a[:3]", "a++b", "a[x:²]", "a[x:-5]", "a[x:1e3]", f"a[x:{10**30}]"]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_source_is_refused(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_sources(text)


def test_a_split_behind_all_rows_of_a_file_is_refused():
    with pytest.raises(UsageError, match="leaves none for 'test'"):
        parse_sources("a.jsonl[train,test:5]")


def test_test_rows_beside_training_rows_are_held_out():
    train, held = separate(parse_sources("a[train:10,test:5]+b[test]+c[train_prefs,test_prefs:9]"))
    assert [str(item) for item in train] == ["a[train:10]", "b[test]", "c[train_prefs]"]
    assert [str(item) for item in held] == ["a[test:5]", "c[test_prefs:9]"]


def test_splits_of_a_file_are_other_rows(rows_file):
    def prompts(text):
        return [
            row.turns[0]["content"]
            for item in parse_sources(text)
            for row in read_rows(item, settings(), SkippedRows())
        ]

    whole = prompts(str(rows_file))
    assert prompts(f"{rows_file}[train:30,test:10]") == whole and len(whole) == 40
    assert prompts(f"{rows_file}[train:3]+{rows_file}[validation:2]") == whole[:5]


@pytest.mark.parametrize("streaming", [False, True])
def test_fewer_rows_than_asked_for_are_an_error_unless_they_are_streamed(rows_file, streaming):
    wanted = Selection(str(rows_file), "train", 41)
    rows = read_rows(wanted, settings(streaming=streaming), SkippedRows())
    if streaming:
        assert len(list(rows)) == 40
    else:
        with pytest.raises(DataError, match=r"fewer rows than asked for[\s\S]*40 rows[\s\S]*41 rows"):
            list(rows)


def test_joined_sources_are_read_in_order_and_named_in_errors(tmp_path, rows_file):
    other = tmp_path / "more.jsonl"
    other.write_text('{"prompt": "1", "response": "2"}\n{"prompt": "1"}\n')
    first, second = parse_sources(f"{rows_file}[train:2]+{other}")
    assert [row.index for row in read_rows(first, settings(), SkippedRows())] == [0, 1]
    rows = read_rows(second, settings(), SkippedRows())
    assert next(rows).answer == "2"
    with pytest.raises(DataError, match=r"row 1 of .*more.jsonl"):
        next(rows)


def test_tokenizer_gives_numbers_and_tags_one_token_each_and_round_trips():
    text = "<answer> 100 * 0 - ( 57 + 3 ) / 2 = 1 </answer>"
    ids = TOKENIZER(text)["input_ids"]
    assert len(ids) == len(text.split()) and TOKENIZER.decode(ids, skip_special_tokens=True) == text
    assert TOKENIZER("<answer>5*19</answer>")["input_ids"] == TOKENIZER("<answer> 5 * 19 </answer>")["input_ids"]
    assert TOKENIZER("hello 101")["input_ids"] == [TOKENIZER.unk_token_id] * 2


def test_saved_tokenizer_is_the_same_one(tmp_path):
    from dare_train.setup import load_tokenizer

    TOKENIZER.save_pretrained(tmp_path)
    loaded = load_tokenizer(str(tmp_path))
    turns = [{"role": "user", "content": "3 4 = 7"}]
    for tokenizer in (TOKENIZER, loaded):
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == list(render(row()).ids[:7])


def test_prompt_and_answer_are_split_where_generation_starts():
    example = render(row())
    tokens = TOKENIZER.convert_ids_to_tokens(example.ids)
    assert tokens == ["<bos>", "<user>", "3", "4", "=", "7", "<assistant>", "3", "+", "4", "<eos>"]
    assert example.prompt_length == 7 and example.answer_length == 4
    assert render(row(), end_of_turn=False).answer_length == 3


def test_a_header_that_the_template_always_writes_is_not_trained():
    tokenizer = build_puzzle_tokenizer()
    tokenizer.chat_template = LLADA_LIKE
    renderer = Renderer(tokenizer, settings(), frozenset([tokenizer.eos_token_id]))
    prompt = renderer.prompt(row().turns)
    assert prompt.endswith("<assistant> ")
    with pytest.raises(DataError, match="differently"):
        renderer.row(row())  # this template gives the answer the user's header: the prompt is no prefix
    tokenizer.chat_template = LLADA_LIKE.replace("<user>", "{{ '<user>' if m['role'] == 'user' else '<assistant>' }}")
    tokens = tokenizer.convert_ids_to_tokens(renderer.row(row()).ids)
    assert tokens[-5:] == ["<assistant>", "3", "+", "4", "<eos>"]


@pytest.mark.parametrize(
    ("record", "part"),
    [
        ({"prompt": "a"}, "'response' is missing"),
        ({"prompt": "a", "response": " "}, "'response' is empty"),
        ({"prompt": 3, "response": "b"}, "'prompt' is empty or not text"),
        ({"prompt": "a", "response": None}, "'response' is missing"),
    ],
)
def test_a_bad_row_is_refused_with_its_index_or_counted(tmp_path, record, part):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "1", "response": "2"}) + "\n" + json.dumps(record) + "\n")
    with pytest.raises(DataError, match="row 1 of") as caught:
        list(read_rows(Selection(str(path)), settings(), SkippedRows()))
    assert part in str(caught.value) and "--skip-bad" in str(caught.value)
    skipped = SkippedRows()
    assert len(list(read_rows(Selection(str(path)), settings(on_bad_row="skip"), skipped))) == 1
    assert skipped.total == 1


def test_too_long_and_empty_rows_are_refused_or_counted():
    renderer = Renderer(TOKENIZER, settings(max_length=8), frozenset())
    with pytest.raises(DataError, match="row 0 cannot be trained on: row is too long"):
        renderer.row(row())
    skipped = SkippedRows()
    renderer = Renderer(TOKENIZER, settings(max_length=8, on_bad_row="skip"), frozenset())
    assert list(renderer.rows([row(), row("3", "4")], skipped)) == [Example((3, 5, 11, 6, 10, 2), 4)]
    assert skipped.reasons == {"row is too long": 1}


@pytest.mark.parametrize("text", [b"{broken\n", b"[1, 2]\n", b'{"prompt": "\xff"}\n', b"[" * 100_000 + b"\n"])
def test_a_damaged_file_names_the_line(tmp_path, text):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text)
    with pytest.raises(DataError, match="line 1"):
        list(read_rows(Selection(str(path)), settings(), SkippedRows()))


def test_a_damaged_parquet_file_and_an_unknown_kind_are_named(tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="no readable Parquet file"):
        list(read_rows(Selection(str(tmp_path / "rows.parquet")), settings(), SkippedRows()))
    (tmp_path / "rows.csv").write_text("a,b")
    with pytest.raises(UsageError, match="csv"):
        list(read_rows(Selection(str(tmp_path / "rows.csv")), settings(), SkippedRows()))
    with pytest.raises(DataError, match="is a folder"):
        list(read_rows(Selection(str(tmp_path)), settings(), SkippedRows()))


@pytest.mark.parametrize(("place", "kind"), [("there", UsageError), ("rows.jsonl/x.parquet", SetupError)])
def test_prepared_rows_are_not_written_where_no_file_can_be(tmp_path, rows_file, place, kind):
    (tmp_path / "there").mkdir()
    with pytest.raises(kind, match=r"folder|cannot be written"):
        write_prepared(tmp_path / place, [Example((1, 2), 1)], "digest", {})
    assert not list(tmp_path.glob(".*")) and rows_file.is_file()


def test_messages_and_parquet(tmp_path):
    import pandas

    turns = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    pandas.DataFrame({"chat": [turns, turns[:1]]}).to_parquet(tmp_path / "rows.parquet")
    found = read_rows(Selection(str(tmp_path / "rows.parquet")), settings(messages_field="chat"), SkippedRows())
    assert next(found).answer == "2"
    with pytest.raises(DataError, match="not the assistant's"):
        next(found)


def test_puzzle_rows_are_the_evaluation_s_prompts_and_other_problems():
    rows = list(read_rows(Selection("puzzles/countdown", "sft", 900), settings(), SkippedRows()))
    assert len(rows) == 900 and len({r.turns[0]["content"] for r in rows}) > 700
    problems = {(tuple(sorted(r.turns[0]["content"].split()[:3])), r.turns[0]["content"].split()[-1]) for r in rows}
    assert len(problems) == 400
    held = {r.turns[0]["content"] for r in read_rows(Selection("puzzles/countdown", "test"), settings(), SkippedRows())}
    assert not held & {r.turns[0]["content"] for r in rows}


@given(rows=st.integers(1, 40), seed=st.integers(0, 99), epoch=st.integers(0, 3))
def test_each_epoch_visits_each_row_once_in_an_order_of_its_own(rows, seed, epoch):
    order = RowOrder(rows, seed)
    visited = [order[epoch * rows + place] for place in range(rows)]
    assert sorted(visited) == list(range(rows))
    assert visited == [RowOrder(rows, seed)[epoch * rows + place] for place in range(rows)], "any position, any time"


def test_padding_is_outside_unless_it_is_eos_of_the_answer():
    examples = [Example((5, 6, 7), 1), Example((5, 6, 7, 8, 9), 2)]
    plain = collate(examples, (0, 1), pad_id=0)
    assert plain.ids_BT.tolist() == [[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]]
    assert plain.maskable_BT.int().tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
    assert plain.valid_BT[0].tolist() == [True] * 3 + [False] * 2
    filled = collate(examples, (0, 1), pad_id=0, eos_id=2, length=6)
    assert filled.ids_BT[0].tolist() == [5, 6, 7, 2, 2, 2] and filled.maskable_BT[0].tolist() == [False] + [True] * 5
    assert bool(filled.valid_BT.all()) and torch.equal(filled.ids_BT[1, 5:], torch.tensor([2]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai/gsm8k/main[train:2]", [("openai/gsm8k", ("main",), "train")]),
        ("openai/gsm8k[test:1]+squad[validation:1]", [("openai/gsm8k", (), "test"), ("squad", (), "validation")]),
    ],
)
def test_sets_of_the_hub_are_asked_for_by_name_configuration_and_split(monkeypatch, text, expected):
    asked = []

    def load_dataset(path, *configuration, split, streaming):
        assert streaming, "only the rows that are wanted are fetched"
        asked.append((path, configuration, split))
        return iter([{"prompt": "1", "response": str(n)} for n in range(5)])

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    rows = [row for item in parse_sources(text) for row in read_rows(item, settings(), SkippedRows())]
    assert asked == expected and [row.answer for row in rows] == (["0", "1"] if len(expected) == 1 else ["0", "0"])


@pytest.mark.parametrize("error", [ConnectionError("no route"), FileNotFoundError("no such set")])
def test_a_set_of_the_hub_that_cannot_be_opened_says_whether_the_network_is_missing(monkeypatch, error):
    def load_dataset(*_, **__):
        raise error

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(DataError) as caught:
        list(read_rows(Selection("someone/rows"), settings(), SkippedRows()))
    assert isinstance(caught.value, UnreachableError) == isinstance(error, ConnectionError)


def test_a_template_that_refuses_a_conversation_names_the_row():
    tokenizer = build_puzzle_tokenizer()
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(DataError, match=r"row 0 cannot be trained on[\s\S]*roles must alternate"):
        Renderer(tokenizer, settings(), frozenset()).row(row())
