"""``dare-eval data``: missing files are named before anything loads, and nothing is downloaded."""

from __future__ import annotations

import json
from functools import partial

import pytest

pytestmark = pytest.mark.xdist_group("opencompass")


@pytest.fixture
def cli(server, tmp_path_factory):
    """The command line where OpenCompass is imported already."""
    return partial(server.console, tmp_path_factory.mktemp("cli"))


def test_generated_data_is_present_with_rows_and_hash(cli):
    done = cli("dare-eval", "data", "check", "configs/eval/tiny_sudoku.py", "--json")
    assert done.returncode == 0, done.stderr
    [entry] = json.loads(done.stdout)
    assert (entry["status"], entry["rows"], entry["path"]) == ("present", 400, "generated")
    assert len(entry["sha256"]) == 64


def test_a_config_without_data_sets_is_no_success(cli, tmp_path):
    (tmp_path / "bare.py").write_text("models = []\n")
    done = cli("dare-eval", "data", "check", tmp_path / "bare.py")
    assert done.returncode == 2 and "names no data sets" in done.stderr


def test_missing_files_are_listed_with_licence_and_origin(cli, tmp_path):
    env = {"DARE_DATA": str(tmp_path), "COMPASS_DATA_CACHE": ""}
    done = cli("dare-eval", "data", "check", "configs/eval/replay_llada_gsm8k.py", "--json", env=env)
    assert done.returncode == 4
    [entry] = json.loads(done.stdout)
    assert entry["status"] == "missing" and entry["licence"] == "MIT"
    assert entry["path"] == str(tmp_path / "data" / "gsm8k")
    assert "URLError" not in done.stderr and "data sets cannot be read: gsm8k" in done.stderr


def test_folder_without_its_files_is_broken_not_present(cli, tmp_path):
    (tmp_path / "data" / "gsm8k").mkdir(parents=True)
    env = {"DARE_DATA": str(tmp_path), "COMPASS_DATA_CACHE": ""}
    done = cli("dare-eval", "data", "check", "configs/eval/replay_llada_gsm8k.py", "--json", env=env)
    assert done.returncode == 4
    assert json.loads(done.stdout)[0]["status"] == "broken"


def test_overlap_reports_counts_and_names_a_bad_line(cli, tmp_path):
    train, bench = tmp_path / "train.jsonl", tmp_path / "bench.jsonl"
    train.write_text('{"question": "How many apples?", "answer": "3"}\n\n{"question": "Other."}\n')
    bench.write_text('{"question": "how many APPLES"}\n{"question": "Unseen."}\n')
    done = cli("dare-eval", "data", "overlap", train, bench)
    assert done.returncode == 0, done.stderr
    assert "exact: 0 of 2" in done.stdout and "normalised: 1 of 2" in done.stdout and "clean: 1 of 2" in done.stdout
    train.write_text('{"question": "x"}\n{broken\n')
    done = cli("dare-eval", "data", "overlap", train, bench)
    assert done.returncode == 4 and "line 2" in done.stderr
    train.write_bytes(b'{"question": "x"}\n\xff\xfe\n')
    done = cli("dare-eval", "data", "overlap", train, bench)
    assert done.returncode == 4 and "line 2" in done.stderr and "Traceback" not in done.stderr
    train.write_text('{"text_en": "x"}\n')
    done = cli("dare-eval", "data", "overlap", train, bench)
    assert done.returncode == 4 and "--field" in done.stderr and "text_en" in done.stderr
    train.write_text("\n")  # nothing to look in is not clean
    done = cli("dare-eval", "data", "overlap", train, bench)
    assert done.returncode == 4 and "no training rows" in done.stderr and "clean" not in done.stdout
