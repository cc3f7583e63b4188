"""Makes an installed outside package in a folder: its modules, and the metadata that announces its entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent / "package"
ENTRY_POINTS = """
[dare.families]
spiral = outside_dllm.family:FAMILY

[dare.decoders]
every_other = outside_dllm.decoder:EveryOther

[dare.scorers]
parity = outside_dllm.scorer:score_parity

[dare.benchmarks]
parity = outside_dllm.parity_gen:parity_datasets

[dare.algorithms]
halves = outside_dllm.algorithm:ALGORITHM
"""


def install(folder: Path) -> dict[str, str]:
    """Copy the package of docs/extending.md below ``folder``; return the environment in which it is installed."""
    target = folder / "outside_dllm"
    target.mkdir()
    for source in SOURCES.glob("*.py"):
        (target / source.name).write_text(source.read_text())
    info = folder / "outside_dllm-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-dllm\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "160", "OMP_NUM_THREADS": "1"}


def run_python(code: str, env: dict[str, str], *args: str) -> dict:
    """Run ``code`` in a fresh interpreter and return the JSON object it writes to standard output."""
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
