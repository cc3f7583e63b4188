"""Local servers for the engine tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT


@dataclass
class Running:
    """A server process and its address."""

    process: subprocess.Popen
    url: str
    port: int


@pytest.fixture
def serve(tmp_path):
    """Start local servers; they end with the test."""
    started: list[Running] = []

    def start(
        model: str = "tiny-bd-countdown", settings: dict | None = None, port: int = 0, faults: str = "", more=()
    ) -> Running:
        place = tmp_path / f"port-{len(started)}"
        settings = settings or {"gen_length": 8, "block_length": 4, "steps": 6, "cache": "block"}
        words = [sys.executable, "-m", "tests.engines.local_server", model, json.dumps(settings), str(port)]
        process = subprocess.Popen(
            [*words, "--faults", faults, "--port-file", str(place), *more],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        running = Running(process, "", _port(place, process))
        running.url = f"http://127.0.0.1:{running.port}"
        started.append(running)
        return running

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def _port(place: Path, process: subprocess.Popen) -> int:
    for _ in range(1200):
        if place.exists():
            return int(place.read_text())
        assert process.poll() is None, "the server did not start"
        time.sleep(0.1)
    raise AssertionError("the server says no port")
