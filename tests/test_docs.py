"""The README and the documentation are true: each shown command runs, each named path exists."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_commands import commands, documents, paths

ROOT = Path(__file__).resolve().parents[1]
# Run elsewhere: test.sh is the run that contains this test; demo.sh has tests/test_demo.py.
ELSEWHERE = {"bash scripts/test.sh", "bash scripts/demo.sh"}
SCRIPTS = {"opencompass", "dare-eval", "dare-train", "streamlit", "python", "bash", "pytest", "torchrun", "sbatch"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the tracked files, so that what commands write stays out of the repository."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    names = [n for n in listed.split("\0") if n and not n.startswith("tests/")]
    assert names, "this test needs the git checkout"
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("document", [d for d in documents(ROOT) if commands(d, "bash")], ids=lambda d: d.name)
def test_every_shown_command_runs(document, checkout):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "160"}
    env.pop("DARE_DB", None)
    for command in commands(document, "bash"):
        if command in ELSEWHERE:
            continue
        shell = ["bash", "-euo", "pipefail", "-c", command]
        done = subprocess.run(shell, cwd=checkout, env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("document", documents(ROOT), ids=lambda d: d.name)
def test_every_named_path_exists(document):
    missing = [p for p in paths(document) if not ((ROOT / p).exists() or (document.parent / p).exists())]
    assert missing == []


@pytest.mark.parametrize("document", [d for d in documents(ROOT) if commands(d, "console")], ids=lambda d: d.name)
def test_commands_that_need_weights_name_real_programs_and_files(document):
    for command in commands(document, "console"):
        words = [word for word in shlex.split(command.removeprefix("$ ")) if "=" not in word]
        assert Path(words[0]).name in SCRIPTS or (ROOT / words[0]).exists(), command
        for word in words[1:]:
            if word.startswith(("configs/", "scripts/", "benchmarks/", "leaderboard/")):
                assert (ROOT / word).exists(), f"{command}: no {word}"


def test_readme_names_the_two_commands_and_ci_runs_the_second():
    shown = commands(ROOT / "README.md", "bash")
    assert shown[:2] == ["bash scripts/demo.sh", "bash scripts/test.sh"]
    assert "bash scripts/test.sh" in (ROOT / ".ci" / "run").read_text().splitlines()
