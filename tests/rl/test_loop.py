"""The loop: figures, samples, resuming inside a rollout, any number of processes, failures that stop or do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dare_eval.errors import IncompleteError, UsageError
from dare_eval.records.manifest import read_manifest
from dare_train.algorithms.build import METHODS
from dare_train.engine.metrics import read_metrics
from dare_train.rl.build import resolve
from dare_train.rl.collapse import CollapseWatch
from dare_train.run import run
from dare_train.setup import plan_model
from tests.rl.conftest import BLOCKS
from tests.train.conftest import same_weights, stopped_after, weights_of
from tests.train.test_loop import quiet

FIGURES = (
    "reward", "exact", "credit", "kl_loss", "entropy", "grad_norm", "zero_variance", "response_tokens", "eos_share",
    "nfe", "unmask_order", "unscored", "rollout_gap", "rollout_s", "reward_s", "score_s", "distinct",
)  # fmt: skip


def train(config):
    return run(config, METHODS["rl"], quiet()).path


def lines(folder, key="loss"):
    return [line for line in read_metrics(folder / "metrics.jsonl") if key in line]


def test_a_run_writes_figures_samples_budget_and_a_model(rl_config):
    folder = train(rl_config(algorithm={"updates_per_rollout": 2}))
    found = lines(folder)
    assert [line["step"] for line in found] == [1, 2, 3, 4]
    assert set(FIGURES) <= found[0].keys()
    assert found[0]["reward"] == found[1]["reward"], "both steps use one rollout"
    assert found[0]["nfe"] == 3 and found[0]["response_tokens"] == 5 and abs(found[0]["rollout_gap"]) < 1e-4
    held = lines(folder, "heldout_exact")
    assert [line["step"] for line in held] == [0, 4] and held[0]["heldout_n"] == 12
    budget = read_manifest(folder).budget
    assert (budget.prompts, budget.rollouts, budget.reward_calls) == (8, 32, 32)
    assert budget.rollout_nfe == 96 and budget.rollout_tokens == 160 and budget.optimizer_steps == 4
    [first, *_] = samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert len(samples) == 4 and len(first["completions"]) == 4 and first["rollout"] == 0
    assert sorted(set(first["completions"][0]["step_map"])) == [0, 1, 2]
    assert (folder / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("algo", ["d1", "coupled_grpo", "spg", "bgpo", "elbo_grpo", "espo", "mdpo", "justgrpo"])
def test_every_algorithm_trains_on_a_masked_network(rl_config, algo):
    folder = train(rl_config(algo=algo, train={"max_steps": 2, "batch_size": 8}))
    assert len(lines(folder)) == 2
    assert any(line["grad_norm"] > 0 for line in lines(folder))


def test_trees_train_on_a_masked_network(rl_config):
    tree = {"rollout": {"root_children": 2, "branch": 2, "levels": 2}, "updates_per_rollout": 2, "minibatches": 2}
    folder = train(rl_config(algo="dtreerpo", algorithm=tree, train={"max_steps": 5, "batch_size": 4}))
    assert len(lines(folder)) == 5 and any(line["grad_norm"] > 0 for line in lines(folder))
    assert read_manifest(folder).budget.rollouts == 2 * 4 * 4


@pytest.mark.parametrize("algo", ["ebpo", "bgpo", "cj_grpo", "d1"])
def test_block_networks(rl_config, algo):
    folder = train(rl_config(**{**BLOCKS, "algo": algo}, train={"max_steps": 2, "batch_size": 8}))
    assert any(line["grad_norm"] > 0 for line in lines(folder))


@pytest.mark.parametrize("stop", [1, 2, 4])
@pytest.mark.parametrize("changes", [{"algo": "cj_grpo"}, {"algo": "coupled_grpo"}], ids=["replay", "own noise"])
def test_stopped_inside_a_rollout_and_resumed_equals_straight(rl_config, tmp_path, stop, changes):
    """C162 for reinforcement learning: three updates per rollout, a reference that follows, stopped anywhere."""
    constants = {"updates_per_rollout": 3, "kl": {"coef": 0.1, "sync_every": 2, "sync_share": 0.5}}
    settings = {**changes, "algorithm": constants, "train": {"max_steps": 7}, "optim": {"lr": 1e-3}}
    straight = train(rl_config(output_dir=str(tmp_path / "straight"), **settings))
    with stopped_after(stop):
        train(rl_config(**settings))
    resumed = train(rl_config(**settings))
    assert same_weights(weights_of(resumed), weights_of(straight))
    assert [line["loss"] for line in lines(resumed)] == [line["loss"] for line in lines(straight)]
    assert (resumed / "samples.jsonl").read_text() == (straight / "samples.jsonl").read_text()
    assert read_manifest(resumed).budget.rollouts == read_manifest(straight).budget.rollouts


@pytest.mark.xdist_group("processes")
def test_two_processes_equal_one_for_three_algorithms(rl_settings, tmp_path, root):
    records = []
    for algo in ("d1", "cj_grpo", "espo"):
        constants = {"updates_per_rollout": 2}
        common = {"algo": algo, "algorithm": constants, "optim": {"lr": 1e-3}, "train": {"max_steps": 4}}
        records.append(rl_settings(output_dir=str(tmp_path / f"{algo}-both"), **common))
    threshold = {"gen_length": 8, "block_length": 4, "policy": "threshold", "threshold": 0.5, "steps": None}
    records.append(rl_settings(output_dir=str(tmp_path / "uneven-both"), rollout=threshold, train={"max_steps": 2}))
    plan = tmp_path / "runs.json"
    plan.write_text(json.dumps(records))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*launcher, "-m", "tests.rl.several", str(plan)]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    alone = tmp_path / "alone.json"
    for record in records:
        record["output_dir"] = record["output_dir"].replace("-both", "-alone")
    alone.write_text(json.dumps(records))
    done = subprocess.run([sys.executable, "-m", "tests.rl.several", str(alone)], cwd=root, env=env, check=False)
    assert done.returncode == 0
    names = ("loss", "reward", "exact", "entropy", "nfe", "zero_variance", "heldout_exact", "grad_norm")
    for record in records:
        one = tmp_path / record["output_dir"]
        both = tmp_path / record["output_dir"].replace("-alone", "-both")
        for ours, theirs in zip(*(read_metrics(folder / "metrics.jsonl") for folder in (one, both)), strict=True):
            assert [ours.get(name) for name in names] == pytest.approx([theirs.get(name) for name in names], abs=2e-4)
        left, right = weights_of(one), weights_of(both)
        assert max(float((left[name] - right[name]).abs().max()) for name in left) < 2e-3
        assert read_manifest(one).budget.rollout_nfe == read_manifest(both).budget.rollout_nfe


def test_a_checkpoint_inside_a_rollout_wants_the_same_number_of_processes(rl_config):
    config = rl_config(algorithm={"updates_per_rollout": 3}, train={"max_steps": 4})
    folder = train(config)
    progress = folder / "checkpoints" / "step_00000004" / "progress.json"
    record = json.loads(progress.read_text())
    assert record["algorithm"]["processes"] == 1
    record["algorithm"]["processes"] = 2
    progress.write_text(json.dumps(record))
    with pytest.raises(UsageError, match="as many processes"):
        train(rl_config(algorithm={"updates_per_rollout": 3}, train={"max_steps": 5}))


def test_a_reward_that_fails_on_one_sample_does_not_stop_the_run(rl_config, caplog):
    """C166 inside a run: unscored samples are counted, told once, and are no zeros."""
    folder = train(rl_config(reward={"kind": "tests.rl.test_loop:fails_now_and_then", "workers": 0}))
    assert sum(line["unscored"] for line in lines(folder)) > 0
    assert sum("now and then" in record.message for record in caplog.records) == 1
    assert all(line["reward"] == 1.0 for line in lines(folder)), "an unscored sample is not a reward of 0"


def fails_now_and_then(**options):
    seen = [0]

    def judge(answer):
        seen[0] += 1
        if seen[0] % 4 == 2:
            raise ValueError("now and then")
        return 1.0

    return judge


def fails_always(**options):
    def judge(answer):
        raise ValueError("never works")

    return judge


def test_a_reward_that_always_fails_stops_the_run(rl_config):
    with pytest.raises(IncompleteError, match="no completion of a rollout could be scored") as caught:
        train(rl_config(reward={"kind": "tests.rl.test_loop:fails_always"}))
    assert "never works" in str(caught.value)


def gives_one(**options):
    return lambda answer: 1.0


def test_equal_rewards_move_nothing(rl_config):
    base = weights_of(train(rl_config(train={"max_steps": 1}, algorithm={"kl": {"coef": 0.0}})))
    folder = train(
        rl_config(
            output_dir=str(rl_config().output_dir) + "-equal",
            reward={"kind": "tests.rl.test_loop:gives_one"},
            algorithm={"kl": {"coef": 0.0}},
            optim={"weight_decay": 0.0},
        )
    )
    from dare_eval.networks import load_network

    start = load_network("tiny-countdown").state_dict()
    assert all(torch.equal(start[name], tensor) for name, tensor in weights_of(folder).items())
    assert any(not torch.equal(start[name], tensor) for name, tensor in base.items())
    assert all(line["zero_variance"] == 1.0 and line["grad_norm"] == 0.0 for line in lines(folder))


def test_adapters_train_with_the_base_as_the_reference(rl_config):
    lora = {"model": {"lora": {"rank": 4, "alpha": 8}}, "optim": {"lr": 1e-2}, "algorithm": {"updates_per_rollout": 2}}
    folder = train(rl_config(algo="d1", **lora))
    assert (folder / "model" / "adapter_model.safetensors").is_file()
    assert max(line["kl_loss"] for line in lines(folder)) > 0


def test_undefined_and_contradictory_settings_are_refused(rl_config):
    network = plan_model(rl_config().model).config
    for changes, words in (
        ({"algo": "ebpo"}, "not defined"),
        ({"algo": "cj_grpp"}, "cj_grpo"),
        ({"rollout": {"group_size": 1}}, "several"),
        ({"rollout": {"temperature": 0.0}}, "greedy"),
        ({"algorithm": {"kll": 1}}, "kll"),
        ({"rollout": {"cache": "block"}}, "cache"),
        ({"algo": "dtreerpo", "algorithm": {"rollout": {"levels": 0}}}, "1 or more"),
        ({"algo": "dtreerpo", "algorithm": {"rollout": {"branch": 1.5}}}, "no whole number"),
        ({"algo": "dtreerpo", "algorithm": {"rollout": {"brnch": 3}}}, "brnch"),
    ):
        with pytest.raises(UsageError, match=words):
            resolve(rl_config(**changes), network)


def test_a_prompt_without_room_for_an_answer_is_refused_before_the_run(rl_config):
    config = rl_config(rollout={"gen_length": 64, "block_length": 64})
    with pytest.raises(UsageError, match="longer than the model's context"):
        train(config)
    assert not (Path(config.output_dir) / "metrics.jsonl").exists()


def test_collapse_is_told_once_per_cause(caplog):
    watch = CollapseWatch(drop=0.5, entropy_floor=0.01)
    assert not watch.heldout(0, 0.4, 400) and not watch.heldout(10, 0.3, 400)
    assert watch.heldout(20, 0.1, 400) and watch.heldout(30, 0.1, 400)
    assert watch.rollout(5, {"entropy": 0.001}, 1.0, 8)
    assert not watch.rollout(6, {"entropy": 0.5, "distinct": 1.0, "exact": 0.0}, 1.0, 8)
    assert watch.rollout(7, {"entropy": 0.5, "distinct": 1 / 8, "exact": 0.1}, 1.0, 8)
    assert watch.causes == {"held-out score": 20, "entropy": 5, "diversity": 7}
    assert len(caplog.records) == 3
    again = CollapseWatch(drop=0.5, entropy_floor=0.01)
    again.restore(watch.state())
    assert again.heldout(40, 0.1, 400) and again.causes == watch.causes and len(caplog.records) == 3


def test_bfloat16_products_old_values_are_those_of_the_updates_first_forward(rl_config):
    folder = train(rl_config(algorithm={"updates_per_rollout": 2, "kl": {"coef": 0.0}}, train={"precision": "bf16"}))
    firsts = [line for line in lines(folder) if line["step"] % 2 == 1]
    assert all(line["ratio"] == pytest.approx(1.0, abs=1e-6) for line in firsts)
    assert any(abs(line["ratio"] - 1.0) > 1e-6 for line in lines(folder) if line["step"] % 2 == 0)


def test_files_of_a_half_used_rollout_go_with_their_checkpoints(rl_config):
    changes = {"max_steps": 8, "save_every": 1, "keep_checkpoints": 3}
    folder = train(rl_config(algorithm={"updates_per_rollout": 5, "kl": {"coef": 0.0}}, train=changes))
    kept = {path.name.partition("_rank")[0] for path in (folder / "rollouts").iterdir()}
    assert kept >= {"step_00000006", "step_00000007", "step_00000008"} and len(kept) <= 5
