"""The README's first command, as a user runs it (on the environment that is already installed)."""

from __future__ import annotations

import json
import os
import re
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
    reports = sorted((checkout / "runs").rglob("report.json"), key=lambda p: p.stat().st_mtime)
    first, last = json.loads(reports[0].read_text()), json.loads(reports[-1].read_text())
    before = next(r for r in first if r["metric"] == "exact" and "sudoku" in r["dataset"])
    after = next(r for r in last if r["metric"] == "exact" and "sudoku" in r["dataset"])
    assert before["value"] < 60 < 75 < after["value"]
    assert before["low"] < before["value"] < before["high"] and before["n"] == before["expected"]
    assert str(reports[-1].parent) in done.stdout or reports[-1].parent.name in done.stdout
    assert re.search(r"wins|losses", done.stdout)
