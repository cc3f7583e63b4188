"""Averages over the parts of a benchmark that upstream splits into many data sets (MMLU: 57 subjects)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opencompass.utils import dataset_abbr_from_cfg

from dare_eval.evaluators.benchmarks import benchmark_of, is_likelihood

PART_KEYS = ("name", "category")


def benchmark_groups(dataset_cfgs: Iterable[Any]) -> list[dict[str, Any]]:
    """Return one summary group per benchmark of which several named parts run, in order of appearance.

    The average weighs every part alike, as upstream's groups do. Only data sets of one class that differ in ``name``
    or ``category`` are parts: prompt variants of one data set are not, and LiveCodeBench's three tasks neither.
    """
    parts: dict[tuple[str, str], list[str]] = {}
    for cfg in dataset_cfgs:
        found = benchmark_of(cfg)
        if found is not None and any(cfg.get(key) for key in PART_KEYS):
            name = f"{found.name} (likelihood)" if is_likelihood(cfg) else found.name
            members = parts.setdefault((name, str(cfg["type"])), [])
            if (abbr := dataset_abbr_from_cfg(cfg)) not in members:
                members.append(abbr)
    return [{"name": name, "subsets": members} for (name, _), members in parts.items() if len(members) > 1]
