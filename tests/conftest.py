"""Fixtures shared by all tests: the repository root, data folders named by the environment, command lines."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

# Speed is never asserted in a test: a machine under load would fail examples by their time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def dare_data() -> Path:
    """Folder of real benchmark rows; tests that need it are skipped where it is absent."""
    folder = os.environ.get("DARE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DARE_DATA is not set: no benchmark rows on this machine")
    return Path(folder)


def forking(kind: str):
    """Yield the process that command lines of a kind are forked from."""
    from tests.runtime.harness import Server

    started = Server(kind)
    yield started
    started.close()


@pytest.fixture(scope="session")
def trainer():
    """One process that has imported torch and the trainer."""
    yield from forking("training")


@pytest.fixture
def cli(trainer, tmp_path_factory):
    """Run a console script of the project (``cli("dare-eval", "check")``) in a process forked from ``trainer``."""
    return partial(trainer.console, tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="session")
def server():
    """One process that has imported OpenCompass; tests that use it belong to the xdist group ``opencompass``."""
    yield from forking("opencompass")


@pytest.fixture
def workplace(server, tmp_path):
    """A folder in which real ``opencompass`` and ``dare-eval`` command lines run, forked from ``server``."""
    from tests.runtime.harness import Workplace

    return Workplace(server, tmp_path)
