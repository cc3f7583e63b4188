"""The engines' environments: every direct requirement is pinned within its bounds, and pip agrees (slow, network)."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.conftest import ROOT

ENGINES = ("sglang", "lmdeploy")
TARGET = {"python_version": "3.11", "sys_platform": "linux", "platform_machine": "x86_64", "extra": ""}


def pins(engine: str) -> dict[str, Version]:
    lines = (ROOT / f"constraints-{engine}.txt").read_text().splitlines()
    pairs = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, _, version in pairs}


def requirements(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + [one for extra in extras for one in project["optional-dependencies"][extra]]
    return [one for one in map(Requirement, listed) if one.marker is None or one.marker.evaluate(TARGET)]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_direct_requirement_is_pinned_within_its_bounds(engine):
    held = pins(engine)
    for one in requirements(engine, "dev"):
        assert one.specifier.contains(held[canonicalize_name(one.name)]), one


def test_the_engines_exclude_each_other_as_the_docs_say():
    first, second = (pins(engine)["torch"] for engine in ENGINES)
    text = (ROOT / "docs" / "engines.md").read_text()
    assert first != second and f"torch {first}" in text and f"torch {second}" in text


def glibc() -> tuple[int, ...]:
    name, version = platform.libc_ver()
    return tuple(map(int, version.split("."))) if name == "glibc" else ()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_pip_accepts_the_set(engine, tmp_path: Path):
    if sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64" or glibc() < (2, 34):
        pytest.skip("the sets are for Python 3.11 on Linux x86-64 with glibc 2.34 or newer")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    # A pip that reads metadata without downloading gigabytes of packages.
    got = subprocess.run([python, "-m", "pip", "install", "-q", "pip>=25"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"no package index: {got.stderr[-300:]}")
    report = tmp_path / "report.json"
    words = ["install", "--dry-run", "--quiet", "--report", str(report), "--constraint", f"constraints-{engine}.txt"]
    wanted = [str(one) for one in requirements(engine)]
    done = subprocess.run([python, "-m", "pip", *words, *wanted], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {
        canonicalize_name(one["metadata"]["name"]): Version(one["metadata"]["version"])
        for one in json.loads(report.read_text())["install"]
    }
    held = pins(engine)
    assert {name: held.get(name) for name in found} == found
