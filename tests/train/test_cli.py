"""The command line as a user meets it."""

from __future__ import annotations

import json

import pytest
import yaml


@pytest.fixture
def recipe(settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    return path


def test_show_config_prints_every_setting_and_trains_nothing(cli, recipe, tmp_path):
    done = cli("dare-train", "sft", "--config", recipe, "--show-config", "--set", "optim.lr=0.5", "--track", "wandb")
    assert done.returncode == 0
    shown = yaml.safe_load(done.stdout)
    assert shown["optim"]["lr"] == 0.5 and shown["train"]["max_steps"] == 4 and shown["objective"]["preset"] == "auto"
    assert shown["train"]["track"] == ["wandb"]
    assert not (tmp_path / "run").exists()


def test_dry_run_checks_estimates_and_trains_nothing(cli, recipe, tmp_path):
    done = cli("dare-train", "sft", "--config", recipe, "--dry-run")
    assert done.returncode == 0, done.stderr
    for part in ("nothing was trained", "parameters", "MiB", "s per step", "preset llada"):
        assert part in done.stdout
    assert not (tmp_path / "run").exists()


def test_dry_run_finds_a_bad_row(cli, recipe, rows_file):
    with rows_file.open("a") as stream:
        stream.write('{"prompt": "1"}\n')
    done = cli("dare-train", "sft", "--config", recipe, "--dry-run")
    assert done.returncode == 4 and "row 40" in done.stderr and "'response' is missing" in done.stderr
    skipped = cli("dare-train", "sft", "--config", recipe, "--dry-run", "--skip-bad")
    assert skipped.returncode == 0 and "left out 1 rows: 1 x field 'response' is missing" in skipped.stdout


def test_skipped_rows_are_counted_where_a_person_sees_it(cli, recipe, rows_file, tmp_path):
    with rows_file.open("a") as stream:
        stream.write('{"prompt": "1"}\n{"response": "1"}\n{"prompt": "1"}\n')
    done = cli("dare-train", "sft", "--config", recipe, "--skip-bad")
    assert done.returncode == 0, done.stderr
    assert "left out 3 rows: 2 x field 'response' is missing; 1 x field 'prompt' is missing" in done.stdout
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    listed = json.loads(cli("dare-eval", "ls", "checkpoints", "--json").stdout)
    assert [line["checkpoint"] for line in listed] == ["run"], "known to the store without --then-eval"
    assert manifest["data"]["skipped"] == {"field 'response' is missing": 2, "field 'prompt' is missing": 1}
    prepared = tmp_path / "rows.parquet"
    done = cli("dare-train", "data", "prepare", "--config", recipe, "--output", prepared, "--skip-bad")
    assert done.returncode == 0 and "40 rows" in done.stdout and "left out 3 rows" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--set", "optim.lrr=1"], 2, ["optim.lrr", "did you mean 'lr'"]),
        (["--set", "data.train=nothing.jsonl"], 4, ["nothing.jsonl", "does not exist"]),
        (["--set", "data.train=puzzles/sudokku"], 2, ["sudokku", "sudoku"]),
        (["--set", "data.response_field=answer"], 4, ["row 0", "'answer' is missing"]),
        (["--set", "objective.preset=sdar"], 2, ["does not fit a network of family 'llada'"]),
        (["--set", "model.architecture.alibi=true"], 4, ["alibi"]),
        (["--set", "train.device=cuda"], 5, ["no GPU"]),
    ],
)
def test_a_mistake_is_one_panel_with_the_remedy(cli, recipe, arguments, code, parts):
    done = cli("dare-train", "sft", "--config", recipe, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


FOREIGN = {"model_type": "bert", "hidden_size": 8, "vocab_size": 9}


@pytest.mark.parametrize(
    ("verb", "changes", "code", "parts"),
    [
        ("sft", {"model": {"base": "FOREIGN"}}, 2, ["bert", "llada"]),
        ("sft", {"model": {"base": "tiny-bd-countdown"}, "objective": {"preset": "llada"}}, 2, ["family 'sdar'"]),
        ("preference", {"model": {"base": "tiny-bd-countdown"}}, 2, ["family sdar", "llada, llada_moe, dream"]),
        ("preference", {"model": {"base": "tiny-countdown"}, "data": {"train": "puzzles/countdown[sft:9]"}}, 4, [
            "row 0", "'chosen' is missing"]),
        ("pretrain", {"model": {"base": "tiny-countdown"}, "data": {"train": "puzzles/countdown[sft:9]"}}, 4, [
            "row 0", "'text' is missing", "data.text_field"]),
        ("sft", {"model": {"base": "tiny-sudko"}}, 4, ["tiny-sudko", "did you mean 'tiny-sudoku'"]),
    ],
)  # fmt: skip
def test_a_wrong_base_or_data_set_is_named_before_anything_is_trained(cli, tmp_path, verb, changes, code, parts):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text(json.dumps(FOREIGN))
    pairs = {"train": "puzzles/countdown_pairs[sft:20]"}
    base = {
        "output_dir": str(tmp_path / "run"),
        "data": pairs if verb == "preference" else {"train": "puzzles/countdown[sft:20]"},
        "train": {"max_steps": 1, "batch_size": 4, "threads": 1},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**base, **changes}).replace("FOREIGN", str(tmp_path / "foreign")))
    done = cli("dare-train", verb, "--config", path)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "run").exists()
    for part in parts:
        assert part in done.stderr


def test_a_missing_config_and_no_verb(cli):
    done = cli("dare-train", "sft", "--config", "nowhere.yaml")
    assert done.returncode == 2 and "nowhere.yaml" in done.stderr
    shown = cli("dare-train", "--help").stdout
    for verb in ("pretrain", "sft", "preference", "export", "data"):
        assert f" {verb} " in shown
