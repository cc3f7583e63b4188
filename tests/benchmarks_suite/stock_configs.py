"""Writes the generated files of ``configs/eval``: ``python -m tests.benchmarks_suite.stock_configs``."""

from __future__ import annotations

from pathlib import Path

from dare_eval.presets.catalog import catalog, stock_text

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "eval"

WITH_ENGINES = ("gsm8k", "math500", "humaneval", "mbpp", "sudoku", "countdown")
"""Benchmarks that have a file per engine; ``dare-eval run --engine`` writes any other."""


def stock_files() -> dict[str, str]:
    """Return the content of every generated file by its name."""
    suites = catalog()["suites"]
    names = [*suites["all"], *suites["likelihood"]]
    native = {f"{family}_{name}.py": stock_text(family, name) for family in catalog()["families"] for name in names}
    return native | {
        f"{family}_{name}_{engine}.py": stock_text(family, name, engine)
        for engine, known in catalog()["engines"].items()
        for family in known.get("families", ())
        for name in WITH_ENGINES
    }


if __name__ == "__main__":
    for name, text in stock_files().items():
        (FOLDER / name).write_text(text)
