"""Two processes on gloo do what one does: same losses whatever the strategy, checkpoints that either continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

import dare_train.rl.config  # noqa: F401  - makes the verb known
from dare_train.algorithms.build import METHODS
from dare_train.config import VERBS
from dare_train.engine.checkpoint import checkpoints
from dare_train.engine.metrics import read_metrics
from dare_train.export import export_checkpoint
from dare_train.run import run
from dare_train.settings import validate
from tests.networks.shapes import LLADA2, LLADA_MOE, SDAR_MOE
from tests.rl import conftest as rl
from tests.train.conftest import ARCHITECTURE, merged
from tests.train.parallel_cases import in_processes
from tests.train.test_loop import quiet

pytestmark = pytest.mark.xdist_group("processes")
STEPS = 20
"""Of the runs named in ``LONG``; the others do a few."""
LONG = ("fsdp2", "blocks", "pairs")
IDS = ("vocab_size", "mask_token_id", "eos_token_id", "pad_token_id")
BLOCKS = {"model": {"architecture": {"block_size": 4}}, "objective": {"preset": "bd3lm"}}
PAIRS = {
    "model": {"architecture": None, "tokenizer": None, "base": "tiny-countdown"},
    "data": {"train": "puzzles/countdown_pairs[sft:50,validation:9]", "end_of_turn": False},
    "optim": {"lr": 1e-4},  # at 1e-3 Adam's first steps amplify the order of sums beyond 1e-6 within 20 steps
    "train": {"batch_size": 4, "micro_batch_size": 1},
}
PRACTICE = merged(rl.BASE, {"model": {"architecture": None, "tokenizer": None}})
BLOCK_PRACTICE = rl.BLOCKS


def experts(shape, **changes):
    """Settings of a network with experts; its token ids are those of the tokenizer."""
    plain = {key: value for key, value in shape.items() if key not in IDS}
    wide = {"architecture": plain, "dtype": "float64"}  # drawn with a large spread, so float32 would differ by more
    return merged({"model": wide, "moe": {"aux_coef": 0.1}}, changes)


def spread(**train):
    return {"train": train}


# name: (verb, settings, settings that only several processes have)
RUNS = {
    "fsdp2": ("sft", {}, spread(strategy="fsdp2")),
    "ddp": ("sft", {}, spread(strategy="ddp")),
    "zero2": ("sft", {}, spread(reshard_after_forward=False)),
    "zero1": ("sft", spread(micro_batch_size=1), spread(reshard_after_forward=False, reduce_every_part=False)),
    "copies_of_shards": ("sft", {}, spread(shard_size=1)),
    "offload": ("sft", {}, spread(cpu_offload=True)),
    "recomputed": ("sft", {}, spread(gradient_checkpointing=True)),
    "average": ("sft", {"optim": {"ema_decay": 0.9}}, {}),
    "blocks": ("sft", BLOCKS, {}),
    "columns": ("sft", {}, spread(sequence_parallel=2)),
    "columns_of_copies": ("sft", {}, spread(sequence_parallel=2, strategy="ddp")),
    "block_columns": ("sft", BLOCKS, spread(sequence_parallel=2)),
    "pairs": ("preference", PAIRS, {}),
    "pairs_adapter": ("preference", merged(PAIRS, {"model": {"lora": {"rank": 4}}}), {}),
    "pairs_columns": ("preference", PAIRS, spread(sequence_parallel=2)),
    "rollouts": ("rl", PRACTICE, spread(sequence_parallel=2)),
    "block_rollouts": ("rl", merged(PRACTICE, BLOCK_PRACTICE), spread(sequence_parallel=2)),
    "experts": ("sft", experts(LLADA_MOE), {}),
    "block_experts": ("sft", experts(SDAR_MOE), spread(gradient_checkpointing=True)),
    "half": ("sft", experts(LLADA_MOE, model={"dtype": "float32"}, train={"precision": "bf16"}), {}),
    "grouped_experts": ("sft", experts(LLADA2, moe={"freeze_router": True}), spread(strategy="ddp")),
    "expert_columns": ("sft", experts(LLADA_MOE), spread(sequence_parallel=2)),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every run in two processes and in one: ``folders(name)`` gives both folders."""
    root = tmp_path_factory.mktemp("runs")
    rows = root / "rows.jsonl"
    texts = [{"prompt": f"{n} {n + 1} = {2 * n + 1}", "response": " ".join(["+"] * (1 + n % 5))} for n in range(40)]
    rows.write_text("".join(json.dumps(row) + "\n" for row in texts))
    base = {
        "seed": 3,
        "model": {"architecture": ARCHITECTURE, "tokenizer": "puzzles"},
        "data": {"train": str(rows)},
        "optim": {"lr": 1e-3},
        "train": {"batch_size": 6, "threads": 1, "log_every": 1},
    }

    def settings(name, processes):
        _, common, several = RUNS[name]
        architecture = common.get("model", {}).get("architecture", {})
        start = merged(base, {"model": {"architecture": None}}) if "model_type" in (architecture or {}) else base
        steps = spread(max_steps=STEPS if name in LONG else 4)
        full = merged(merged(start, steps), merged(common, several if processes == 2 else {}))
        return {**full, "output_dir": str(root / f"{name}_{processes}")}

    in_processes(root, {"runs": [{"verb": RUNS[name][0], "settings": settings(name, 2)} for name in RUNS]})

    def both(name):
        verb = RUNS[name][0]
        run(validate(VERBS[verb], settings(name, 1)), METHODS[verb], quiet())
        return root / f"{name}_1", root / f"{name}_2"

    return both


def curve(folder, *names):
    lines = read_metrics(folder / "metrics.jsonl")
    return [line[name] for line in lines for name in names if name in line]


def tensors(model):
    """Return what a model folder holds: whole weights, or an adapter alone."""
    (path,) = model.glob("*model.safetensors")
    return load_file(path)


def furthest(left, right):
    ours, theirs = tensors(left / "model"), tensors(right / "model")
    assert ours.keys() == theirs.keys()
    return max(float((ours[key] - theirs[key]).abs().max()) for key in ours)


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_equal_one(folders, name, tmp_path):
    alone, both = folders(name)
    exported, written = tensors(export_checkpoint(both, tmp_path / "out")), tensors(both / "model")
    assert exported.keys() == written.keys() and all(torch.equal(exported[key], written[key]) for key in written)
    found = curve(both, "loss")
    assert len(found) == (STEPS if name in LONG else 4)
    if name == "half":  # the order of sums shows in bfloat16
        assert found == pytest.approx(curve(alone, "loss"), rel=2e-2)
        return
    assert found == pytest.approx(curve(alone, "loss"), abs=1e-6)
    held = ("margin", "heldout_margin", "heldout_n", "router_max_load", "router_idle", "tokens", "rows")
    assert curve(both, *held) == pytest.approx(curve(alone, *held), abs=1e-4)
    assert furthest(alone, both) < 2e-5


def test_a_stopped_run_goes_on_with_another_number_of_processes(settings, cli, tmp_path):
    """SIGTERM to the launcher of two; then one process; then two again: the same as one process throughout."""
    common = {"optim": {"lr": 1e-3, "schedule": "constant"}}
    folder, path = tmp_path / "moved", tmp_path / "config.yaml"

    def command(steps, processes):
        path.write_text(yaml.safe_dump(settings(output_dir=str(folder), train={"max_steps": steps}, **common)))
        return ["dare-train", "sft", "--config", str(path), "--nproc", str(processes)]

    program, *rest = command(2000, 2)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = subprocess.Popen([Path(sys.executable).with_name(program), *rest], env=env, stderr=subprocess.PIPE)
    while started.poll() is None and not (folder / "metrics.jsonl").exists():
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    stderr = started.communicate(timeout=120)[1].decode()
    assert started.returncode == 3 and "after step" in stderr, stderr
    reached = int(checkpoints(folder / "checkpoints")[-1].name[-8:])
    assert 0 < reached < 2000
    for steps, processes in ((reached + 2, 1), (reached + 4, 2)):
        done = cli(*command(steps, processes), env=env)
        assert done.returncode == 0 and "continuing after step" in done.stdout, done.stderr
    straight = settings(output_dir=str(tmp_path / "straight"), train={"max_steps": reached + 4}, **common)
    run(validate(VERBS["sft"], straight), METHODS["sft"], quiet())
    assert [line["step"] for line in read_metrics(folder / "metrics.jsonl")] == list(range(1, reached + 5))
    assert curve(folder, "loss") == pytest.approx(curve(tmp_path / "straight", "loss"), abs=1e-6)
    assert furthest(tmp_path / "straight", folder) < 1e-4


def test_a_failure_in_several_processes_is_one_message_and_a_non_zero_exit(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings(data={"train": str(tmp_path / "none.jsonl")})))
    done = cli("dare-train", "sft", "--config", path, "--nproc", 2)
    assert done.returncode == 4 and done.stderr.count("none.jsonl") == 1, done.stderr
    assert done.stderr.count("exit code") == 1 and "Traceback" not in done.stderr and "ChildFailed" not in done.stderr
    assert torch.get_num_threads() == 1


def test_what_processes_cannot_do_is_said_before_they_start(cli, settings, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(settings()))
    done = cli("dare-train", "sft", "--config", path, "--sp", 2, "--dry-run")
    assert done.returncode == 2 and "--nproc 2" in done.stderr
    path.write_text(yaml.safe_dump(settings(train={"batch_size": 7})))
    done = cli("dare-train", "sft", "--config", path, "--nproc", 2)
    assert done.returncode == 2 and "--set train.batch_size=8" in done.stderr
    assert not (tmp_path / "run").exists(), "no process was started"


@pytest.mark.parametrize("who", ["1", "01"])
def test_a_failure_is_said_once_whoever_fails(tmp_path, root, who):
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, time\nfrom dare_eval.errors import DataError\nfrom dare_train import cli\n"
        f"def app():\n    if os.environ['RANK'] in {who!r}:\n        raise DataError('a row is bad')\n"
        "    time.sleep(60)\n"
        "cli.app = app\ncli.main()\n"
    )
    command = [sys.executable, "-m", "dare_train.launcher", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 4 and done.stderr.count("a row is bad") == 1, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of a parent's end on Linux only")
def test_a_killed_command_leaves_no_process_behind(tmp_path, root):
    """kill -9 to what started the launcher; SIGTERM reaches the training processes, which save and end."""
    (tmp_path / "waits.py").write_text(
        "import os, pathlib, signal, time\n"
        f"place = pathlib.Path({str(tmp_path)!r}) / os.environ['RANK']\n"
        "def end(*_):\n    place.with_suffix('.ended').touch()\n    raise SystemExit(3)\n"
        "signal.signal(signal.SIGTERM, end)\nplace.touch()\ntime.sleep(300)\n"
    )
    (tmp_path / "starts.py").write_text(
        "import subprocess, sys\n"
        "launcher = [sys.executable, '-m', 'dare_train.launcher', '--standalone', '--nproc-per-node=2']\n"
        f"subprocess.run([*launcher, {str(tmp_path / 'waits.py')!r}])\n"
    )
    parent = subprocess.Popen([sys.executable, str(tmp_path / "starts.py")], cwd=root, stderr=subprocess.DEVNULL)
    wait_for(lambda: all((tmp_path / rank).exists() for rank in "01"))
    assert not list(tmp_path.glob("*.ended"))
    parent.kill()
    assert parent.wait() == -signal.SIGKILL
    wait_for(lambda: all((tmp_path / f"{rank}.ended").exists() for rank in "01"))


def wait_for(condition, limit_s=120):
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.05)
