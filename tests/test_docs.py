"""The README and the documentation are true: each shown command runs, each named path exists."""

from __future__ import annotations

import itertools
import os
import re
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
SHELL = re.compile(r"[|&;<>$`*?~\n]")
"""What only a shell understands."""
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


@pytest.fixture
def shell(checkout, server, trainer, tmp_path, monkeypatch):
    """Run a command in ``checkout``: a program of ours in a process that has its packages, the rest in bash."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("DARE_DB", raising=False)
    programs = {"dare-eval": server, "opencompass": server, "dare-train": trainer}

    def run(command):
        words = shlex.split(command)
        set_before = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, words))
        program, *arguments = words[len(set_before) :]
        if program in programs and not SHELL.search(command):
            return programs[program].console(tmp_path, program, *arguments, cwd=checkout, env=set_before, timeout=600)
        bash = ["bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(bash, cwd=checkout, capture_output=True, text=True, timeout=600, check=False)

    return run


@pytest.fixture(scope="module")
def run_before() -> set[str]:
    """Commands that another page shows too and that have run in ``checkout``."""
    return set()


@pytest.mark.xdist_group("opencompass")
@pytest.mark.parametrize("document", [d for d in documents(ROOT) if commands(d, "bash")], ids=lambda d: d.name)
def test_every_shown_command_runs(document, shell, run_before):
    for command in commands(document, "bash"):
        if command in ELSEWHERE | run_before:
            continue
        done = shell(command)
        run_before.add(command)
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
