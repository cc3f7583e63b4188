"""Streams, prepared rows and pretraining: the same rows at the same positions, whatever happened in between."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dare_eval.errors import DataError, UsageError
from dare_train.algorithms.build import METHODS
from dare_train.config import PretrainConfig, TextSettings
from dare_train.data.rows import SkippedRows
from dare_train.data.spec import parse_sources
from dare_train.data.supply import Memory, Stream
from dare_train.data.text import text_sequences
from dare_train.data.tokenizer import build_puzzle_tokenizer
from dare_train.engine.metrics import read_metrics
from dare_train.run import run
from dare_train.settings import validate
from tests.train.conftest import ARCHITECTURE, same_weights, weights_of
from tests.train.test_loop import quiet

TOKENIZER = build_puzzle_tokenizer()


@given(rows=st.integers(1, 12), buffer=st.integers(0, 15), start=st.integers(0, 30), count=st.integers(1, 9))
def test_a_stream_gives_the_same_rows_at_a_position_however_it_was_read(rows, buffer, start, count):
    def stream():
        return Stream(lambda: iter(range(rows)), 3, buffer=buffer)

    straight = stream().take(0, start + count)
    again = stream()
    assert again.take(start, count) == straight[start:]
    assert again.take(0, 1) == straight[:1], "going back reads anew"
    for epoch in range((start + count) // rows):
        assert sorted(straight[epoch * rows : (epoch + 1) * rows]) == list(range(rows))


def test_a_buffer_shuffles_and_no_buffer_keeps_the_order():
    assert Stream(lambda: iter(range(50)), 0, buffer=0).take(0, 50) == list(range(50))
    shuffled = Stream(lambda: iter(range(50)), 0, buffer=20).take(0, 100)
    assert shuffled[:50] != list(range(50)) and shuffled[:50] != shuffled[50:]


def test_an_empty_stream_is_refused():
    with pytest.raises(DataError, match="empty"):
        Stream(lambda: iter(()), 0, buffer=3).take(0, 1)


def test_memory_takes_epochs_in_turn():
    supply = Memory("abc", 0, shuffle=True)
    assert sorted(supply.take(0, 3)) == sorted(supply.take(3, 3)) == list("abc")


def test_streamed_training_resumes_exactly(config, tmp_path):
    changes = {"data": {"streaming": True, "shuffle_buffer": 8}, "train": {"max_steps": 9}}
    straight = run(config(output_dir=str(tmp_path / "straight"), **changes), METHODS["sft"], quiet())
    short = {**changes, "train": {"max_steps": 5}, "optim": {"schedule": "constant"}}
    long = {**short, "train": {"max_steps": 9}}
    run(config(**short), METHODS["sft"], quiet())
    resumed = run(config(**long), METHODS["sft"], quiet())
    constant = run(config(output_dir=str(tmp_path / "constant"), **long), METHODS["sft"], quiet())
    assert same_weights(weights_of(resumed.path), weights_of(constant.path))
    assert not same_weights(weights_of(resumed.path), weights_of(straight.path))
    manifest = json.loads((resumed.path / "manifest.json").read_text())
    assert manifest["data"]["streaming"] and len(manifest["data"]["first_rows_hash"]) == 64


@pytest.fixture
def prepared(cli, settings, tmp_path):
    import yaml

    recipe = tmp_path / "config.yaml"
    recipe.write_text(yaml.safe_dump(settings()))
    path = tmp_path / "rows.parquet"
    done = cli("dare-train", "data", "prepare", "--config", recipe, "--output", path)
    assert done.returncode == 0 and "40 rows" in done.stdout, done.stderr
    refused = cli("dare-train", "data", "prepare", "--config", recipe, "--output", path)
    assert refused.returncode == 2 and "exists already" in refused.stderr
    return path


def test_a_stream_counts_the_rows_it_leaves_out(config, rows_file):
    with rows_file.open("a") as stream:
        stream.write('{"prompt": "1"}\n')
    changes = {"data": {"streaming": True, "on_bad_row": "skip"}, "train": {"max_steps": 30}}
    folder = run(config(**changes), METHODS["sft"], quiet())
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["data"]["skipped"] == {"field 'response' is missing": 1}, "once, however often it is met"


def test_prepared_rows_train_the_same_and_are_refused_for_other_settings(prepared, config, tmp_path):
    direct = run(config(output_dir=str(tmp_path / "direct")), METHODS["sft"], quiet())
    cached = run(config(data={"prepared": str(prepared)}), METHODS["sft"], quiet())
    assert same_weights(weights_of(direct.path), weights_of(cached.path))
    with pytest.raises(DataError, match="another tokenizer, chat template or data settings"):
        other = config(output_dir=str(tmp_path / "b"), data={"prepared": str(prepared), "end_of_turn": False})
        run(other, METHODS["sft"], quiet())
    with pytest.raises(UsageError, match="not both"):
        config(data={"prepared": str(prepared), "streaming": True})
    with pytest.raises(DataError, match="no file of prepared rows"):
        run(config(output_dir=str(tmp_path / "c"), data={"prepared": "nothing.parquet"}), METHODS["sft"], quiet())


def text_settings(path, **changes):
    return TextSettings(**{"train": str(path), "sequence_length": 8, "random_length_share": 0.0, **changes})


def cut(path, skipped=None, **changes):
    settings = text_settings(path, **changes)
    return text_sequences(TOKENIZER, 2, parse_sources(settings.train), settings, skipped or SkippedRows())


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    texts = (" ".join(map(str, range(n % 10, n % 10 + 5))) for n in range(40))
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def test_texts_are_joined_by_eos_and_cut_without_a_gap(texts):
    found = list(cut(texts))
    assert all(len(example.ids) == 8 and example.prompt_length == 0 for example in found)
    joined = [token for example in found for token in example.ids]
    assert joined[:12] == [7, 8, 9, 10, 11, 2, 8, 9, 10, 11, 12, 2] and len(joined) == 40 * 6 // 8 * 8


def test_some_sequences_are_shorter(texts):
    found = list(cut(texts, random_length_share=0.5))
    lengths = {len(example.ids) for example in found}
    assert len(lengths) > 3 and max(lengths) == 8
    joined = [token for example in found for token in example.ids]
    assert joined == [token for example in cut(texts) for token in example.ids][: len(joined)], "no text is lost"


def test_a_row_without_text_is_refused_with_its_index(texts):
    with texts.open("a") as stream:
        stream.write('{"txt": "1"}\n')
    with pytest.raises(DataError, match=r"row 40 .* has no text"):
        list(cut(texts))
    skipped = SkippedRows()
    for _ in range(2):
        assert list(cut(texts, skipped, on_bad_row="skip"))
    assert skipped.reasons == {"field 'text' is missing": 1}, "reading a stream again counts no row twice"


def test_pretraining_learns_every_token_and_judges_held_out_texts(texts, tmp_path):
    record = {
        "output_dir": str(tmp_path / "run"),
        "model": {"architecture": ARCHITECTURE, "tokenizer": "puzzles"},
        "data": {"train": f"{texts}[train:30,test:10]", "sequence_length": 12},
        "optim": {"lr": 1e-2},
        "train": {"max_steps": 40, "batch_size": 8, "threads": 1, "log_every": 1},
    }
    folder = run(validate(PretrainConfig, record), METHODS["pretrain"], quiet())
    lines = read_metrics(folder.path / "metrics.jsonl")
    judged = [line["heldout_nll"] for line in lines if "heldout_nll" in line]
    assert len(judged) == 2 and judged[1] < 0.8 * judged[0]
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["models"][0]["algorithm"] == "pretrain" and manifest["data"]["skipped"] == {}
    assert manifest["data"]["sources"] == [f"{texts}[train:30]"]
    with pytest.raises(UsageError, match="prompt_field"):
        validate(PretrainConfig, {**record, "data": {**record["data"], "prompt_field": "x"}})
