"""The command line as a user meets it."""

from __future__ import annotations

import pytest
import yaml


@pytest.fixture
def recipe(settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    return path


def test_show_config_prints_every_setting_and_trains_nothing(cli, recipe, tmp_path):
    done = cli("dare-train", "sft", "--config", recipe, "--show-config", "--set", "optim.lr=0.5")
    assert done.returncode == 0
    shown = yaml.safe_load(done.stdout)
    assert shown["optim"]["lr"] == 0.5 and shown["train"]["max_steps"] == 4 and shown["objective"]["preset"] == "auto"
    assert not (tmp_path / "run").exists()


def test_dry_run_checks_estimates_and_trains_nothing(cli, recipe, tmp_path):
    done = cli("dare-train", "sft", "--config", recipe, "--dry-run")
    assert done.returncode == 0, done.stderr
    for part in ("nothing was trained", "parameters", "GiB", "s per step", "preset llada"):
        assert part in done.stdout
    assert not (tmp_path / "run").exists()


def test_dry_run_finds_a_bad_row(cli, recipe, rows_file):
    with rows_file.open("a") as stream:
        stream.write('{"prompt": "1"}\n')
    done = cli("dare-train", "sft", "--config", recipe, "--dry-run")
    assert done.returncode == 4 and "row 40" in done.stderr and "'response' is missing" in done.stderr


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


def test_a_missing_config_and_no_verb(cli):
    done = cli("dare-train", "sft", "--config", "nowhere.yaml")
    assert done.returncode == 2 and "nowhere.yaml" in done.stderr
    assert "sft" in cli("dare-train", "--help").stdout
