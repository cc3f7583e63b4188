"""A training run for people: how it went, and what it answered.

Reads ``manifest.json``, ``metrics.jsonl`` and ``samples.jsonl``; needs no checkpoint and no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dare_eval.errors import DataError, UsageError
from dare_eval.records.manifest import read_manifest
from dare_train.engine.metrics import read_metrics

CURVE = (
    "loss",
    "reward",
    "exact",
    "kl_loss",
    "entropy",
    "grad_norm",
    "zero_variance",
    "response_tokens",
    "eos_share",
    "nfe",
    "unmask_order",
    "rollout_gap",
    "unscored",
)
"""Figures of a line, in this order, where the run has them."""


def show_run(
    folder: Path, console: Console, *, step: int | None, samples: int, lines: int, wrong: bool, order: bool
) -> None:
    """Print the run in ``folder``; raises ``UsageError`` when there is none, ``DataError`` for damaged files."""
    curve = folder / "metrics.jsonl"
    if not curve.is_file():
        raise UsageError("this is no training run", seen=folder, allowed="a folder with metrics.jsonl")
    manifest = read_manifest(folder)
    if not manifest.models:
        raise DataError("the manifest names no model", seen=folder / "manifest.json", allowed="a training run")
    found = read_metrics(curve)
    kept = folder / "samples.jsonl"
    chosen = pick(read_metrics(kept), step)[:samples] if samples and kept.is_file() else []
    try:
        tables = [curve_table(found, lines), *(sample_table(record, wrong=wrong, order=order) for record in chosen)]
        heldout = heldout_lines(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"a line of the run is none that training writes: {type(error).__name__}: {error}",
            seen=f"{curve} or {kept.name}",
        ) from error
    entry = manifest.models[0]
    console.print(
        f"{entry.algorithm} from {entry.parent or 'noise'}, {manifest.status}, seed {manifest.seeds.get('training')}",
        highlight=False,
        soft_wrap=True,
    )
    if manifest.budget:
        spent = {name: value for name, value in manifest.budget.to_dict().items() if value is not None}
        text = ", ".join(f"{name} {value:,.6g}" for name, value in spent.items())
        console.print(f"spent: {text}", highlight=False, soft_wrap=True)
    console.print(tables[0])
    for text in heldout:
        console.print(text, highlight=False, soft_wrap=True)
    for table in tables[1:]:
        console.print(table)


def curve_table(records: Sequence[dict[str, Any]], lines: int) -> Table:
    """Return up to ``lines`` lines of the curve, evenly spread, the last one included."""
    steps = [record for record in records if "loss" in record]
    every = max(1, -(-len(steps) // lines))
    shown = steps[len(steps) - 1 :: -every][::-1] if steps else []
    names = [name for name in CURVE if any(record.get(name) is not None for record in shown)]
    table = Table(title="Curve", title_justify="left")
    for name in ("step", *names):
        table.add_column(name, justify="right")
    for record in shown:
        values = ["-" if record.get(name) is None else f"{record[name]:.3g}" for name in names]
        table.add_row(str(record["step"]), *values)
    return table


def heldout_lines(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line per held-out score with its values and intervals."""
    names = sorted({key for record in records for key in record if key.startswith("heldout_")})
    found = []
    for name in [name for name in names if not name.endswith(("_low", "_high", "_n"))]:
        points = [record for record in records if name in record]
        text = "  ".join(
            f"{record['step']}: {record[name]:.3g} [{record[f'{name}_low']:.3g}, {record[f'{name}_high']:.3g}]"
            for record in points
        )
        found.append(f"held out {name.removeprefix('heldout_')}  {text}")
    return found


def pick(records: Sequence[dict[str, Any]], step: int | None) -> list[dict[str, Any]]:
    """Return the samples of the last rollout, or of the last one at or before ``step``.

    Raises ``UsageError`` when no rollout is that early.
    """
    known = sorted({record["step"] for record in records})
    fitting = [value for value in known if step is None or value <= step]
    if not fitting:
        if not known:
            return []
        raise UsageError("no samples were kept that early", seen=f"--step {step}", allowed=f"{known[0]} or later")
    return [record for record in records if record["step"] == fitting[-1]]


def sample_table(record: dict[str, Any], *, wrong: bool, order: bool) -> Table:
    """Return one prompt with its completions."""
    title = f"step {record['step']}, {record['key']}: {record['prompt']}   reference {record['reference']}"
    table = Table(title=Text(title), title_justify="left", show_lines=False)
    for name in ("reward", "exact", "tokens", "NFE", "end", "completion"):
        table.add_column(name, justify="left" if name in ("end", "completion") else "right", overflow="fold")
    if order:
        table.add_column("fixed at step", overflow="fold")
    for item in record["completions"]:
        if wrong and item["exact"] == 1.0:
            continue
        text = Text(item["text"]) if not item["error"] else Text(f"{item['text']}  (unscored: {item['error']})")
        row: list[str | Text] = [_number(item["reward"]), _number(item["exact"]), str(item["tokens"]), str(item["nfe"])]
        row += [item["stop"], text]
        table.add_row(*row, *([" ".join(map(str, item["step_map"]))] if order else []))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
