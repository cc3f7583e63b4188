"""Comparisons: rows and budgets read, recipes checked, scores pooled and tested, ties, stability, the ledger."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
import yaml
from rich.console import Console

from dare_eval.errors import UsageError
from dare_train.rl import compare_jobs, compare_stats
from dare_train.rl.compare import check_rows, differences
from dare_train.rl.compare_config import CompareConfig, read_budget
from dare_train.rl.compare_jobs import Done, Job
from dare_train.rl.compare_plan import Row, plan_rows
from dare_train.rl.compare_report import Report, markdown
from dare_train.rl.compare_stats import collect_lines, largest_fall
from dare_train.rl.probe import steps_of
from dare_train.settings import validate


def config(*rows, **changes):
    return validate(CompareConfig, {"rows": list(rows), **changes})


def test_rows_become_stages_and_every_base_gets_a_row():
    rows = plan_rows(config("sft", "d1", "sft+cj_grpo", "ebpo", budget={"currency": "cpu_seconds", "amount": 60}))
    names = [row.name for row in rows]
    assert names == ["base tiny-countdown", "base tiny-bd-countdown", "sft", "d1", "sft+cj_grpo", "ebpo"]
    joined = rows[4]
    assert [(stage.name, stage.verb, stage.bounded) for stage in joined.stages] == [
        ("sft", "sft", False),
        ("cj_grpo", "rl", True),
    ]
    second = joined.stages[1].config(seed=2, folder="x", base="somewhere/model", steps=7)
    assert (second.model.base, second.seed, second.train.max_steps, second.algo) == ("somewhere/model", 2, 7, "cj_grpo")
    check_rows(rows)


def test_all_rows_of_a_seed_practise_the_same_problems():
    rows = [row for row in plan_rows(config("d1", "cj_grpo", "espo")) if row.stages]
    records = [row.stages[0].config(seed=1, folder="x", base=None) for row in rows]
    assert len({record.data.model_dump_json() for record in records}) == 1
    assert differences(plan_rows(config("d1", "d1_dare"))) == {}
    assert set(differences(plan_rows(config("d1", "cj_grpo")))) == {"optim.lr"}, "chosen for each on the shipped model"
    found = differences(plan_rows(config("d1", "cj_grpo", settings={"d1": {"optim.lr": 0.5}})))
    assert found == {"optim.lr": {"d1": 0.5, "cj_grpo": 1e-3}}
    verbs = differences(plan_rows(config("sft", "d1")))
    assert verbs["train.batch_size"] == {"sft": 128, "d1": 16} and "rollout" not in verbs


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        (["base"], {}, "nothing to compare"),
        (["d1", "d1"], {}, "named twice"),
        (["sft+"], {}, "no stages joined"),
        (["base+d1"], {}, "not 'base'"),
        (["d11"], {}, "d1"),
        (["sft"], {"budget": {"currency": "rollout_tokens", "amount": 5}}, "makes no rollouts"),
        (["d1"], {"recipes": {"sft": "x.yaml"}}, "no recipe for stage 'd1'"),
        (["d1"], {"settings": {"rl": {"optim.lrr": 1}}}, "lrr"),
        (["mdpo"], {"recipes": {"rl": "configs/train/rl/tiny_bd_countdown.yaml"}}, "mdpo is not defined"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(rows, changes, words):
    with pytest.raises(UsageError, match=words):
        check_rows(plan_rows(config(*rows, **changes)))


def test_budgets():
    assert read_budget("cpu_seconds=60") == {"currency": "cpu_seconds", "amount": 60.0}
    for text in ("60", "cpu=60", "seconds=-1", "seconds=x"):
        with pytest.raises(UsageError, match="budget cannot be read"):
            read_budget(text)
    costs = {"cpu_s": 0.25, "wall_s": 1.0, "forwards": 10.0, "rollout_tokens": 0.0, "steps": 1.0, "per_rollout": 8.0}
    assert steps_of(costs, "cpu_seconds", 60) == 240
    assert steps_of(costs, "steps", 3) == 8, "whole rollouts, at least one"


ITEMS = [f"item{n}" for n in range(200)]


def verdicts(share, seed):
    rng = random.Random(f"{share}-{seed}")
    return {item: float(rng.random() < share) for item in ITEMS}


@pytest.fixture
def lines(monkeypatch):
    """Return the lines of a comparison with made-up verdicts: a base, a better row, and one that is no better."""
    table = {"base": {0: verdicts(0.2, 0)}, "good": {}, "same": {}}
    for seed in range(3):
        table["good"][seed] = {item: max(value, verdicts(0.4, seed)[item]) for item, value in table["base"][0].items()}
        table["same"][seed] = verdicts(0.2, seed + 10)
    monkeypatch.setattr(compare_stats, "load_run", lambda path: path)
    monkeypatch.setattr(
        compare_stats,
        "credits_of",
        lambda path: {("3 steps", "countdown3"): table[path.parts[0]][int(path.parts[1])]},
    )
    done = [
        Done(row=row, seed=seed, training=None if row == "base" else "x", evaluation=f"{row}/{seed}", cpu_s=1.0)
        for row, seeds in table.items()
        for seed in seeds
    ]
    return collect_lines(done, {"good": "base", "same": "base"}), table


def test_scores_are_pooled_and_tested_against_the_base(lines):
    found = {line.row: line for line in lines[0]}
    pooled = [value for seed in range(3) for value in lines[1]["good"][seed].values()]
    assert found["good"].value == pytest.approx(100 * sum(pooled) / len(pooled)) and found["good"].n == 600
    assert list(found["good"].seeds) == [0, 1, 2] and found["base"].gain is None
    gain = found["good"].gain
    assert gain["low"] > 0 and gain["p_holm"] < 0.01 and gain["p_holm"] >= gain["p"]
    assert found["same"].gain["p_holm"] > 0.05
    assert found["good"].group == 1 and found["same"].group == found["base"].group == 2, "ties share a group"


def test_report_as_markdown_and_json(lines, tmp_path):
    report = Report(
        config=config("d1"),
        command="dare-train compare",
        lines=lines[0],
        stability={},
        ledger={"rollouts": {"good": 5.0, "same": 7.0}},
        differences={"optim.lr": {"good": 1, "same": 2}},
        steps={},
        failed=["good, seed 9: boom\nmore"],
    )
    text = markdown(report)
    assert "| 1 | good |" in text and "(tie)" in text and "| rollouts | 5 | 7 |" in text and "failed: good" in text
    report.write(tmp_path)
    record = json.loads((tmp_path / "comparison.json").read_text())
    assert len(record["lines"]) == 3 and record["ledger"]["rollouts"]["same"] == 7.0


def test_largest_fall():
    assert largest_fall([]) is None and largest_fall([0.1, 0.3, 0.2, 0.25]) == pytest.approx(0.1)
    assert largest_fall([0.1, 0.2]) == 0.0


def test_dry_run_and_mistakes_on_the_command_line(cli, tmp_path):
    done = cli(
        "dare-train", "compare", "--algos", "sft,d1,all", "--seeds", 3, "--budget", "cpu_seconds=60", "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    for part in ("nothing was run", "justgrpo", "base tiny-bd-countdown", "3 seeds", "cpu_seconds = 60"):
        assert part in done.stdout
    for arguments, words in (
        (["--algos", "d11"], "did you mean"),
        (["--algos", "d1", "--budget", "60"], "CURRENCY=AMOUNT"),
        (["--algos", "base"], "nothing to compare"),
    ):
        wrong = cli("dare-train", "compare", *arguments, "--output-dir", tmp_path / "x")
        assert wrong.returncode == 2 and words in wrong.stderr
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").touch()
    taken = cli(
        "dare-train",
        "compare",
        "--algos",
        "d1",
        "--output-dir",
        tmp_path / "file",
        env={"DARE_DB": f"sqlite:///{tmp_path}/dare.db"},
    )
    assert taken.returncode == 2 and "cannot be written" in taken.stderr and "Traceback" not in taken.stderr


def job(number, folder):
    row = Row(name=f"row{number}", stages=(), base="tiny-countdown", evaluation="x.py", model_name="tiny-countdown")
    return Job(row=row, seed=0, folder=folder / str(number), steps={}, heldout_points=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_begins_nothing_more_and_ends_what_is_at_work(tmp_path, monkeypatch, number):
    begun, ended = [], []

    def work(job):
        """Be a job of two processes: the first is told to end, the second must not begin."""
        begun.append(job.row.name)
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
        ready.set()
        process.wait()
        ended.append(process.returncode)
        compare_jobs._trained(["--help"], tmp_path / "log")

    ready = threading.Event()
    monkeypatch.setattr(compare_jobs, "run_job", work)

    def interrupt():
        ready.wait()
        time.sleep(2)  # until the child has its interpreter: a signal before that ends it as well
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt, daemon=True).start()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        compare_jobs.run_jobs([job(n, tmp_path) for n in range(3)], Console(quiet=True), nproc=1, ray=False)
    assert begun == ["row0"] and len(ended) == 1 and ended[0] != 0
    assert not (tmp_path / "log").exists(), "the next process of the job would have begun"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_job_that_fails_for_its_disk_does_not_stop_the_others(tmp_path, monkeypatch):
    def work(job):
        if job.row.name == "row1":
            raise OSError(28, "No space left on device")
        return Done(row=job.row.name, seed=0, training=None, evaluation="x", cpu_s=0.0)

    monkeypatch.setattr(compare_jobs, "run_job", work)
    jobs = [job(n, tmp_path) for n in range(3)]
    done, failed = compare_jobs.run_jobs(jobs, Console(quiet=True), nproc=2, ray=False)
    assert [one.row for one in done] == ["row0", "row2"] and "No space left" in failed[0]


@pytest.mark.slow
def test_a_comparison_from_start_to_end(cli, tmp_path):
    """Two rows, two seeds, a few steps each: trained, evaluated, tabled; the same command repeats nothing."""
    path = tmp_path / "compare.yaml"
    settings = {"rl": {"train.batch_size": 4, "data.train": "puzzles/countdown[rl_tuning:40,validation:20]"}}
    path.write_text(
        yaml.safe_dump(
            {
                "rows": ["d1_dare", "cj_grpo"],
                "seeds": 2,
                "recipes": {"rl": "configs/train/rl/tiny_countdown.yaml"},
                "settings": settings,
                "budget": {"currency": "rollout_tokens", "amount": 320},
            }
        )
    )
    env = {"OMP_NUM_THREADS": "1", "DARE_DB": f"sqlite:///{tmp_path}/dare.db"}
    command = ["dare-train", "compare", "--config", path, "--output-dir", tmp_path / "out"]
    done = cli(*command, env=env, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {line["row"] for line in record["lines"]} == {"base", "d1_dare", "cj_grpo"}
    assert record["steps"] == {"d1_dare": 2, "cj_grpo": 16}, "equal rollout tokens"
    assert "rollout_tokens" not in record["ledger"] and "optimizer_steps" in record["ledger"]
    again = cli(*command, env=env, timeout=300)
    assert (
        again.returncode == 0
        and json.loads((tmp_path / "out" / "comparison.json").read_text())["lines"] == record["lines"]
    )
