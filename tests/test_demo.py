"""The README's first command, as a user runs it (on the environment that is already installed)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.test_docs import checkout  # noqa: F401  (fixture)


def test_demo_evaluates_trains_and_compares(checkout):  # noqa: F811
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "DARE_VENV": "active"}
    env["COLUMNS"] = "160"
    env.pop("DARE_DB", None)
    command = ["bash", "scripts/demo.sh"]
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = {path: json.loads(path.read_text()) for path in (checkout / "runs").rglob("report.json")}
    rows = [(path, row) for path, report in found.items() for row in report if row["metric"] == "exact"]
    before = next(row for path, row in rows if "tiny_planning" in path.parts and row["dataset"] == "countdown3")
    trained = [(path, row) for path, row in rows if "evaluation" in path.parts and "baseline-" not in str(path)]
    after = {path.parts[path.parts.index("train") + 1].removeprefix("rl_tiny_countdown_"): row for path, row in trained}
    assert set(after) == {"cj_grpo", "d1_dare"}
    assert before["high"] < after["d1_dare"]["value"]
    for row in (before, *after.values()):
        assert row["low"] < row["value"] < row["high"] and row["n"] == row["expected"] == 400
        assert row["nfe"] == 3 and row["tps"] > 0
    assert all(place.parent.name in done.stdout for place, _ in trained)
    assert "won/lost" in done.stdout and "B better" in done.stdout
    board = [str(Path(sys.executable).parent / "dare-eval"), "board", "--static", "site"]
    subprocess.run(board, cwd=checkout, env=env, capture_output=True, timeout=300, check=True)
    shown = (checkout / "site" / "index.html").read_text()
    assert "tiny-countdown" in shown and "rl_tiny_countdown_d1_dare" in shown and "dare-tie first" in shown
    assert "d1_dare minus base" in (checkout / "site" / "algorithms.html").read_text()
