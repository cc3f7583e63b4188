"""``dare-train rl`` and ``show`` as a user meets them."""

from __future__ import annotations

import json
import re

import pytest
import yaml

FAST = ["--set", "train.max_steps=2", "--set", "train.batch_size=4", "--set", "data.train=puzzles/countdown[rl:20]"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def test_an_unknown_algorithm_lists_the_valid_ones(cli):
    """C177."""
    done = cli("dare-train", "rl", "--algo", "cj_grpp")
    assert done.returncode != 0
    for part in ("cj_grpp", "did you mean 'cj_grpo'", "justgrpo", "d1_dare"):
        assert part in done.stderr


def test_a_broken_follow_up_evaluation_is_found_before_training(cli, tmp_path):
    """C178."""
    arguments = ["--algo", "cj_grpo", "--then-eval", "--eval-config", "missing.py", "--output-dir", tmp_path / "run"]
    done = cli("dare-train", "rl", *arguments)
    assert done.returncode == 2 and "missing.py" in done.stderr and "training_steps_run = 0" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--algo", "vrpo"], ["dare-train preference --algo vrpo"]),
        (["--algo", "ebpo", "--set", "model.base=tiny-countdown"], ["ebpo is not defined", "both directions"]),
        (["--algo", "mdpo", "--set", "model.base=tiny-bd-countdown"], ["mdpo is not defined", "block by block"]),
        (["--algo", "d1", "--set", "reward.shaping.formatt=1"], ["formatt", "format"]),
        (["--algo", "d1", "--set", "rollout.gen_lenth=1"], ["rollout.gen_lenth", "gen_length"]),
    ],
)
def test_a_mistake_is_one_panel_with_the_remedy(cli, tmp_path, arguments, parts):
    done = cli("dare-train", "rl", *arguments, "--output-dir", tmp_path / "run")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    for part in parts:
        assert part in re.sub(r"\s+│\n│\s*", " ", done.stderr)


def test_defaults_need_no_config_and_block_algorithms_take_the_block_model(cli, tmp_path):
    shown = {}
    for algo in ("cj_grpo", "ebpo"):
        done = cli("dare-train", "rl", "--algo", algo, "--show-config", cwd=tmp_path)
        shown[algo] = yaml.safe_load(done.stdout)
        assert shown[algo]["algo"] == algo and algo in shown[algo]["output_dir"]
        assert shown[algo]["optim"]["lr"] == 1e-3, "chosen for the shipped model"
    assert [shown[algo]["model"]["base"] for algo in shown] == ["tiny-countdown", "tiny-bd-countdown"]
    dry = cli("dare-train", "rl", "--algo", "ebpo", "--dry-run", "--output-dir", tmp_path / "x", cwd=tmp_path)
    assert dry.returncode == 0 and "nothing was trained" in dry.stdout and not (tmp_path / "x").exists()


def test_preference_sends_an_algorithm_of_rl_to_the_right_verb(cli):
    done = cli("dare-train", "preference", "--algo", "d1_dare")
    assert done.returncode == 2 and "dare-train rl --algo d1_dare" in done.stderr


def test_a_run_from_anywhere_and_its_samples_browsed(cli, tmp_path):
    done = cli("dare-train", "rl", "--algo", "d1_dare", *FAST, cwd=tmp_path, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "train" / "rl_tiny_countdown_d1_dare"
    assert (folder / "model" / "config.json").is_file()
    shown = cli("dare-train", "show", folder, "--order", env={"COLUMNS": "250"})
    assert shown.returncode == 0, shown.stderr
    for part in ("d1_dare from tiny-countdown, finished", "rollout_tokens", "Curve", "reference", "fixed at step"):
        assert part in shown.stdout
    sample = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    assert sample["prompt"] in shown.stdout
    late = cli("dare-train", "show", folder, "--step", "-1")
    assert late.returncode == 2 and "that early" in late.stderr
    nothing = cli("dare-train", "show", tmp_path)
    assert nothing.returncode == 2 and "no training run" in nothing.stderr
