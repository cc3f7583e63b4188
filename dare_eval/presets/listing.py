"""Models, benchmarks, presets and suites as plain rows for ``dare-eval ls``."""

from __future__ import annotations

from typing import Any

from dare_eval.presets import Preset, entry, find_likelihood, models, rows
from dare_eval.presets.catalog import catalog, known_benchmarks

Line = dict[str, Any]


def model_lines() -> list[Line]:
    """Return one line per model that has presets: name, hub id, and the wrapper that loads it."""
    return [{"model": name, "checkpoint": entry(name)["path"], "wrapper": entry(name)["wrapper"]} for name in models()]


def benchmark_lines() -> list[Line]:
    """Return one line per benchmark: name, what it is, and where its data set config stands."""
    found = known_benchmarks()
    return [{"benchmark": name, "about": one["about"], "config": one["config"]} for name, one in found.items()]


def suite_lines() -> list[Line]:
    """Return one line per named battery."""
    return [{"suite": name, "benchmarks": ", ".join(members)} for name, members in catalog()["suites"].items()]


def preset_lines() -> list[Line]:
    """Return one line per row of the preset table; likelihood tasks are marked."""
    lines = []
    for model in models():
        lines += [_preset_line(preset, "") for preset in rows(model)]
        scored = (entry(model).get("likelihood") or {}).get("rows", {})
        lines += [_preset_line(find_likelihood(model, name), " (likelihood)") for name in scored]
    return lines


def _preset_line(preset: Preset, form: str) -> Line:
    settings = ", ".join(f"{key} {value}" for key, value in preset.decoding.items())
    line = {"model": preset.model, "benchmark": f"{preset.benchmark}{form}", "settings": settings}
    return {**line, "reported": preset.score, "source": preset.source}


LISTS = {
    "models": model_lines,
    "benchmarks": benchmark_lines,
    "presets": preset_lines,
    "suites": suite_lines,
}
"""What ``dare-eval ls`` shows besides the store."""
