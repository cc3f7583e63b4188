"""Makes an installed outside package in a folder: its modules, and the metadata that announces its entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


EACH = """
import contextlib, io, json, sys
found = {}
for name, code in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    found[name] = json.loads(said.getvalue())
json.dump(found, sys.stdout)
"""


def run_python(codes: dict[str, str], env: dict[str, str], *args: str) -> dict[str, Any]:
    """Run ``codes`` one after the other in a fresh interpreter; return what each writes as JSON to standard output."""
    command, given = [sys.executable, "-c", EACH, *args], json.dumps(codes)
    done = subprocess.run(command, env=env, input=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
