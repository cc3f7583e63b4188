"""RL with a server as rollout backend learns Countdown as in-process rollouts do, within the interval (slow).

python -m pytest -m slow tests/engines/test_served_learning.py -s
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dare_eval.records.compare import compare_runs
from dare_eval.records.runs import Run, find_run
from tests.conftest import ROOT

STEPS = 300
COMMON = [
    "rl", "--config", "configs/train/rl/tiny_bd_countdown.yaml", "--algo", "d1_dare",
    "--set", "seed=0", "--set", f"train.max_steps={STEPS}", "--set", f"train.eval_every={STEPS}", "--then-eval",
]  # fmt: skip


def trained(folder: Path, *more: str) -> tuple[Run, dict]:
    """Return the evaluation after training, and the paired test of it against the untrained model."""
    done = subprocess.run(
        [sys.executable, "-c", "from dare_train.cli import main; main()", *COMMON, "--output-dir", str(folder), *more],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "DARE_DB": f"sqlite:///{folder.parent}/store.db"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((folder / "comparison.json").read_text())
    return find_run(folder / "evaluation" / folder.name), found["benchmarks"][0]["test"]


@pytest.mark.slow
def test_a_server_learns_what_in_process_rollouts_learn(tmp_path, serve):
    ours, gain = trained(tmp_path / "inprocess")
    options = json.dumps({"url": serve().url, "folder": str(tmp_path / "shared"), "concurrency": 128})
    place = ("--set", "rollout.backend=sglang", "--set", f"rollout.options={options}")
    theirs, their_gain = trained(tmp_path / "served", *place)
    difference = compare_runs(ours, theirs).benchmarks[0].test
    assert gain["low"] > 0 and their_gain["low"] > 0
    assert difference is not None and difference.low <= 0 <= difference.high
