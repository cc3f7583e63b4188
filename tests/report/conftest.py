"""Made-up runs, and ``dare-eval`` in this process."""

import pytest
from typer.testing import CliRunner

from dare_eval.errors import DareError
from tests.records.conftest import change_manifest, make_run

__all__ = ["change_manifest", "dare", "make_run"]


@pytest.fixture
def dare(monkeypatch, tmp_path):
    """Run ``dare-eval`` in this process; returns (exit code, output)."""
    from dare_eval.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DARE_DB", f"sqlite:///{tmp_path}/store.db")

    def run(*arguments):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        if isinstance(done.exception, DareError):
            return done.exception.exit_code, done.output + done.exception.render()
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return run
