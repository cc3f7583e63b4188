"""Checks a follow-up evaluation before anything is trained, without importing OpenCompass.

The config and the files it reads in are parsed, not run: a missing file, a syntax error, an include that leads
nowhere and a model name that does not occur in it are found in a millisecond. What OpenCompass alone can tell (a
missing data set, a broken class, settings that the network cannot decode with) is ``dare_train.eval_check``'s.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dare_eval.errors import DareError, DataError, SetupError, UsageError, nearest
from dare_train.config import RunConfig
from dare_train.eval_check import plan_evaluation


@dataclass(frozen=True, slots=True)
class FollowUp:
    """An evaluation that can be run once there is a checkpoint."""

    config: Path
    model_name: str
    """Model path in the config that the checkpoint stands in for."""
    baseline: str
    """Shipped name, checkpoint folder or run folder that the result is compared with."""
    program: Path


def check_follow_up(config: RunConfig) -> FollowUp:
    """Return the evaluation that ``config`` asks for; raises ``UsageError`` naming what is missing or wrong.

    The first process has OpenCompass plan it, which may raise any ``DareError``.
    """
    wanted = config.evaluation
    name = wanted.model_name or config.model.base
    baseline = wanted.baseline or config.model.base
    if wanted.config is None:
        raise UsageError(
            "--then-eval needs an evaluation config", remedy="--eval-config PATH, or set evaluation.config"
        )
    if name is None:
        raise UsageError(
            "a network from noise takes no model's place in the evaluation config",
            remedy="set evaluation.model_name to a model path of that config",
        )
    if baseline is None:
        raise UsageError("a network from noise has no parent to compare with", remedy="--baseline NAME, as tiny-sudoku")
    path = Path(wanted.config)
    _check_config(path, name)
    _check_baseline(baseline)
    found = FollowUp(path, name, baseline, opencompass_program())
    if os.environ.get("RANK", "0") == "0":
        plan_evaluation(found.program, path, name, config.model)
    return found


def config_files(path: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the config at ``path`` and every file it reads in, parsed; raises ``UsageError`` for one that cannot be."""
    waiting, seen = [path], set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        tree = _parse(here, path)
        yield here, tree
        waiting += _includes(here, tree)


def _check_config(path: Path, name: str) -> None:
    texts: set[str] = set()
    for _, tree in config_files(path):
        texts |= {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    if name not in texts:
        hint = nearest(name, [text for text in texts if len(text) < 100])
        raise UsageError(
            f"the evaluation config uses no model '{name}'" + (f"; did you mean '{hint}'?" if hint else ""),
            seen=path,
            allowed="a config in which a model has that path",
            remedy="set evaluation.model_name",
        )


def _parse(here: Path, root: Path) -> ast.Module:
    try:
        return ast.parse(here.read_text(encoding="utf-8"))
    except OSError as error:
        what = "the evaluation config" if here == root else f"a file that {root} reads in"
        raise UsageError(
            f"{what} cannot be read: {here}: {error.strerror}",
            seen="training_steps_run = 0",
            allowed="an OpenCompass config, as configs/eval/tiny_sudoku.py",
            remedy="--eval-config PATH",
        ) from None
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{here} is not valid Python: {error}", seen="training_steps_run = 0") from None


def _includes(here: Path, tree: ast.Module) -> list[Path]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.With) or not any("read_base" in ast.dump(item.context_expr) for item in node.items):
            continue
        for step in node.body:
            if isinstance(step, ast.ImportFrom) and step.level:
                place = here.parent
                for _ in range(step.level - 1):
                    place = place.parent
                found.append(place.joinpath(*(step.module or "").split(".")).with_suffix(".py"))
    return found


def _check_baseline(baseline: str) -> None:
    from dare_eval.networks import resolve_model_path

    if is_run_folder(baseline):
        return
    try:
        resolve_model_path(baseline)
    except DareError as error:
        raise DataError(
            f"the baseline cannot be found: {error.what}",
            seen=f"{baseline} (training_steps_run = 0)",
            allowed="a shipped name, a checkpoint folder, or the folder of an evaluation run",
            remedy="--baseline NAME",
        ) from None


def is_run_folder(text: str) -> bool:
    """Return whether ``text`` names a finished evaluation rather than a checkpoint."""
    from dare_eval.records.runs import run_folders

    path = Path(text)
    return path.is_dir() and not (path / "config.json").is_file() and next(run_folders(path), None) is not None


def opencompass_program() -> Path:
    """Return the opencompass command; raises ``SetupError`` when it is not installed."""
    beside = Path(sys.executable).with_name("opencompass")
    found = str(beside) if beside.exists() else shutil.which("opencompass")
    if found is None or importlib.util.find_spec("opencompass") is None:
        raise SetupError(
            "the opencompass command is not installed, so the result could not be evaluated",
            seen="training_steps_run = 0",
            remedy="pip install -e . -c constraints.txt",
        )
    return Path(found)
