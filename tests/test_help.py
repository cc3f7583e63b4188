"""Every command answers ``--help`` without loading torch or OpenCompass."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "opencompass", "transformers", "datasets", "pandas", "sqlalchemy", "scipy", "streamlit")
PROBE = """
import json, sys
from {package}.cli import main
sys.argv = [{name!r}, *{args!r}]
try:
    main()
except SystemExit as end:
    code = end.code
sys.stderr.write("\\n\\x1e" + json.dumps([code, [name for name in {heavy!r} if name in sys.modules]]))
"""


def commands(package: str) -> list[list[str]]:
    import importlib

    import typer

    group = typer.main.get_command(importlib.import_module(f"{package}.cli").app)
    found: list[list[str]] = [[]]
    for name, command in getattr(group, "commands", {}).items():
        found.append([name])
        found += [[name, sub] for sub in getattr(command, "commands", {})]
    return found


CASES = [(package, args) for package in ("dare_eval", "dare_train") for args in commands(package)]


@pytest.mark.parametrize(("package", "args"), CASES, ids=[f"{p} {' '.join(a)}".strip() for p, a in CASES])
def test_help_needs_no_heavy_package(package, args):
    name = package.replace("_", "-")
    code = PROBE.format(package=package, name=name, args=[*args, "--help"], heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    exit_code, loaded = json.loads(done.stderr.rsplit("\x1e", 1)[1])
    assert exit_code in (0, None), done.stderr
    assert loaded == []
    assert "Usage" in done.stdout
