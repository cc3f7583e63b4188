"""A follow-up evaluation that cannot run is found before the first step; one that can is run and compared."""

from __future__ import annotations

import json

import pytest
import yaml

from dare_eval.errors import DareError, DataError, IncompleteError, UsageError
from dare_eval.records.runs import load_run
from dare_train.follow_up import check_follow_up, config_files, is_run_folder
from dare_train.then_eval import run_evaluation

GOOD = {"config": "configs/eval/tiny_sudoku.py", "model_name": "tiny-sudoku", "baseline": "tiny-sudoku"}


@pytest.fixture
def at_root(root, monkeypatch):
    monkeypatch.chdir(root)


def check(make, **changes):
    return check_follow_up(make(evaluation={**GOOD, **changes}))


def test_a_sound_plan_is_accepted_without_running_it(config, at_root):
    plan = check(config)
    assert plan.model_name == "tiny-sudoku" and plan.program.exists()
    read = {path.name for path, _ in config_files(plan.config)}
    assert {"tiny_sudoku.py", "runtime.py", "sudoku4_gen.py"} <= read, "files read in are looked at too"


@pytest.mark.parametrize(
    ("changes", "kind", "parts"),
    [
        ({"config": "missing.py"}, UsageError, ["missing.py", "training_steps_run = 0"]),
        ({"config": None}, UsageError, ["--eval-config"]),
        ({"model_name": None}, UsageError, ["evaluation.model_name"]),
        ({"baseline": None}, UsageError, ["--baseline"]),
        ({"model_name": "tiny-sudko"}, UsageError, ["tiny-sudko", "did you mean 'tiny-sudoku'"]),
        ({"baseline": "tiny-sudok"}, DataError, ["tiny-sudok", "tiny-sudoku"]),
    ],
)
def test_a_broken_plan_is_named(config, at_root, changes, kind, parts):
    with pytest.raises(kind) as caught:
        check(config, **changes)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("models = [", "not valid Python"),
        ("with read_base():\n    from .nowhere import models\n", "nowhere.py"),
    ],
)
def test_a_broken_config_file_is_named(config, tmp_path, text, part):
    path = tmp_path / "evaluation.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=part):
        check(config, config=str(path))


PARTS = ("eval/_base/runtime.py", "datasets/planning/sudoku4_gen.py", "models/tiny/tiny_sudoku.py")
BLOCKS = {"architecture": None, "tokenizer": None, "base": "tiny-bd-countdown"}


@pytest.mark.parametrize(
    ("changes", "old", "new", "kind", "parts"),
    [
        ({}, 'split="test"', 'split="no_such_split"', DareError, ["no_such_split", "training_steps_run = 0"]),
        ({}, "block_length=16", "blok_length=16", UsageError, ["blok_length", "block_length"]),
        ({}, "dare_eval.runtime.eval_task", "dare_eval.runtime.eval_tsk", DareError, ["dare_eval.runtime.eval_tsk"]),
        ({"model": BLOCKS}, "", "", UsageError, ["sdar"]),
    ],
)
def test_what_only_opencompass_can_tell_is_found_before_the_first_step(
    config, root, at_root, tmp_path, changes, old, new, kind, parts
):
    text = "\n".join((root / "configs" / part).read_text() for part in PARTS).replace("sudoku4_datasets", "datasets")
    assert old in text
    path = tmp_path / "evaluation.py"
    path.write_text(text.replace(old, new) if old else text)
    with pytest.raises(kind) as caught:
        check_follow_up(config(**changes, evaluation={**GOOD, "config": str(path)}))
    for part in parts:
        assert part in str(caught.value)


def test_nothing_is_trained_when_the_evaluation_cannot_run(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(evaluation=GOOD)))
    done = cli("dare-train", "sft", "--config", path, "--then-eval", "--eval-config", "missing.py")
    assert done.returncode == 2 and "missing.py" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_failing_evaluation_keeps_the_checkpoint_and_names_the_log(config, at_root, tmp_path):
    plan = check(config)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    from tests.train.test_loop import quiet

    with pytest.raises(IncompleteError, match="checkpoint is safe") as caught:
        run_evaluation(plan, broken, tmp_path / "work", quiet())
    assert "work.log" in str(caught.value)


def test_train_evaluate_and_compare(cli, tmp_path, root):
    """The whole way: a continued checkpoint is scored on the items of its parent, and reuses what the store knows."""
    env = {"DARE_DB": f"sqlite:///{tmp_path}/store.db", "OMP_NUM_THREADS": "1"}
    recipe = root / "configs/train/sft_tiny_sudoku_more.yaml"
    where = tmp_path / "run"
    command = ["sft", "--config", recipe, "--output-dir", where, "--set", "train.max_steps=3", "--set", "optim.lr=0.1"]
    done = cli("dare-train", *command, "--then-eval", env=env, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((where / "comparison.json").read_text())
    exact = next(bench for bench in found["benchmarks"] if bench["metric"] == "exact")
    assert exact["n"] == 400 and exact["comparable"], "same items under the same settings"
    assert exact["value_b"] < exact["value_a"] and exact["test"]["losses"] > 0, "a learning rate of 0.1 ruins it"
    for part in ("won/lost", "items flipped, 5 shown", "report:", "dare-eval compare", "[46.9, 56.6]"):
        assert part in done.stdout
    manifest = json.loads((where / "manifest.json").read_text())
    assert manifest["data"]["overlap"]["sudoku4"]["exact"] == 0
    assert manifest["models"][0]["parent"] == "tiny-sudoku" and len(manifest["models"][0]["parent_hash"]) == 64
    runs = sorted(where.glob("evaluation/*/2*_*"))
    assert len(runs) == 2 and all(is_run_folder(str(run.parent)) for run in runs)
    evaluated = (
        load_run(where / "evaluation" / "run" / runs[-1].name) if runs[-1].parent.name == "run" else load_run(runs[0])
    )
    assert evaluated.manifest is not None
    listed = cli("dare-eval", "ls", "checkpoints", env=env)
    assert "run" in listed.stdout and "sft" in listed.stdout
    again = cli("dare-train", *command, "--then-eval", env=env, timeout=600)
    assert again.returncode == 0 and "already trained" in again.stdout and "evaluated before" in again.stdout
