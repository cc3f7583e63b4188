"""Writes the generated files of ``configs/eval``: ``python -m tests.benchmarks_suite.stock_configs``."""

from __future__ import annotations

from pathlib import Path

from dare_eval.presets.catalog import catalog, stock_text

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "eval"


def stock_files() -> dict[str, str]:
    """Return the content of every generated file by its name."""
    suites = catalog()["suites"]
    names = [*suites["all"], *suites["likelihood"]]
    return {f"{family}_{name}.py": stock_text(family, name) for family in catalog()["families"] for name in names}


if __name__ == "__main__":
    for name, text in stock_files().items():
        (FOLDER / name).write_text(text)
