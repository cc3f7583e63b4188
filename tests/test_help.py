"""Every command answers ``--help`` without loading torch or OpenCompass."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "opencompass", "transformers", "datasets", "pandas", "sqlalchemy", "scipy", "streamlit")
PROBE = """
import contextlib, io, json, sys
import typer
from {package}.cli import app, main

def newly_loaded():
    new = [name for name in {heavy!r} if name in sys.modules and name not in seen]
    seen.update(new)
    return new

def walk(group, words):
    shown, code = io.StringIO(), None
    sys.argv = [{name!r}, *words, "--help"]
    with contextlib.redirect_stdout(shown):
        try:
            main()
        except SystemExit as end:
            code = end.code
    found.append([words, code, "Usage" in shown.getvalue(), newly_loaded()])
    for word, command in getattr(group, "commands", {{}}).items():
        walk(command, [*words, word])

found, seen = [], set()
walk(typer.main.get_command(app), [])
json.dump(found, sys.stdout)
"""
COMMANDS = {"dare_eval": 20, "dare_train": 10}
"""How many a program has at the least."""


@pytest.mark.parametrize("package", COMMANDS)
def test_help_needs_no_heavy_package(package):
    code = PROBE.format(package=package, name=package.replace("_", "-"), heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) >= COMMANDS[package]
    for words, exit_code, usage, heavy in found:
        assert exit_code in (0, None) and usage, words
        assert heavy == [], f"{words} --help loads {heavy}"
