"""Local servers for the engine tests."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Running:
    """A server process and its address."""

    process: int
    url: str
    port: int


@pytest.fixture
def serve(tmp_path, trainer):
    """Start local servers in forks of ``trainer``; they end with the test."""
    started: list[Running] = []

    def start(
        model: str = "tiny-bd-countdown", settings: dict | None = None, port: int = 0, faults: str = "", more=()
    ) -> Running:
        place = tmp_path / f"port-{len(started)}"
        said = tmp_path / f"server-{len(started)}"
        said.mkdir()
        settings = settings or {"gen_length": 8, "block_length": 4, "steps": 6, "cache": "block"}
        words = ["tests.engines.local_server", model, json.dumps(settings), str(port)]
        # No time limit: a server lives as long as its test.
        process = trainer.launch(said, *words, "--faults", faults, "--port-file", str(place), *more, timeout=0)
        running = Running(process, "", _port(place, said / "err"))
        running.url = f"http://127.0.0.1:{running.port}"
        started.append(running)
        return running

    yield start
    for one in started:
        os.kill(one.process, signal.SIGKILL)
        trainer.wait(one.process)


def _port(place: Path, err: Path) -> int:
    for _ in range(1200):
        if place.exists():
            return int(place.read_text())
        assert "Error" not in err.read_text(), err.read_text()
        time.sleep(0.1)
    raise AssertionError("the server says no port")
