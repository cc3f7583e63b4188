"""A private sandbox where the machine allows one; tests that need it are skipped with the reason elsewhere."""

from __future__ import annotations

import functools

import pytest

from dare_eval.errors import SetupError
from dare_eval.scoring.code.worker import Worker


@functools.cache
def refusal() -> str:
    try:
        Worker(private=True).close()
    except SetupError as error:
        return f"{error.what}: {error.seen}"
    return ""


@pytest.fixture(scope="session")
def private_sandbox() -> None:
    """Skip where this machine forbids namespaces."""
    if refusal():
        pytest.skip(f"needs namespaces ({refusal()})")
