from __future__ import annotations

import pytest

from tests.runtime.harness import Server, Workplace


@pytest.fixture(scope="session")
def server():
    started = Server()
    yield started
    started.close()


@pytest.fixture
def workplace(server, tmp_path):
    return Workplace(server, tmp_path)
