"""The result of a comparison as tables for a terminal, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from dare_eval.records.atomic import write_atomic, write_json
from dare_eval.records.compare import ALPHA
from dare_train.rl.compare_config import CompareConfig
from dare_train.rl.compare_stats import Line, Stability


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a comparison found."""

    config: CompareConfig
    command: str
    lines: Sequence[Line]
    stability: Mapping[str, Stability]
    ledger: Mapping[str, Mapping[str, float | None]]
    differences: Mapping[str, Mapping[str, Any]]
    """Settings in which the rows' recipes differ, by key."""
    steps: Mapping[str, int]
    """Optimizer steps that the budget pays for, by stage."""
    failed: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "command": self.command,
            "config": self.config.model_dump(mode="json"),
            "steps": dict(self.steps),
            "lines": [asdict(line) for line in self.lines],
            "stability": {row: asdict(found) for row, found in self.stability.items()},
            "ledger": {name: dict(values) for name, values in self.ledger.items()},
            "settings_that_differ": {key: dict(values) for key, values in self.differences.items()},
            "failed": list(self.failed),
        }

    def write(self, folder: Path) -> None:
        """Write ``comparison.json`` and ``comparison.md``."""
        write_json(folder / "comparison.json", self.to_dict())
        write_atomic(folder / "comparison.md", markdown(self))


HEADS = ("group", "row", "score", "interval", "per seed", "gain", "interval of the gain", "p Holm", "fall", "collapsed")


def cells(line: Line, stability: Stability | None) -> list[str]:
    """Return one row of the table."""
    gain = line.gain or {}
    delta = f"{gain['delta']:+.1f}" if gain else "-"
    span = f"[{gain['low']:+.1f}, {gain['high']:+.1f}]" if gain else "-"
    p = f"{gain['p_holm']:.2g}{'' if gain['p_holm'] < ALPHA else ' (tie)'}" if gain else "-"
    seeds = " / ".join(f"{value:.1f}" for value in line.seeds.values())
    fall = "-" if stability is None or stability.largest_fall is None else f"{stability.largest_fall:.1f}"
    collapsed = "-" if stability is None else f"{stability.collapsed:.0%}"
    group = "-" if line.group is None else str(line.group)
    score = [f"{line.value:.1f}", f"[{line.low:.1f}, {line.high:.1f}]"]
    return [group, line.row, *score, seeds, delta, span, p, fall, collapsed]


def score_tables(report: Report) -> list[Table]:
    """Return one table per setting of the evaluation; rows of one group are ties."""
    found = []
    for (setting, dataset), lines in _settings(report.lines).items():
        table = Table(title=f"{dataset}, {setting} (percent; rows of a group are ties)", title_justify="left")
        for head in HEADS:
            table.add_column(head, justify="left" if head == "row" else "right")
        for line in lines:
            table.add_row(*cells(line, report.stability.get(line.row)))
        found.append(table)
    return found


def ledger_table(report: Report) -> Table | None:
    """Return what was not equal between rows, per seed; None when everything was."""
    if not report.ledger:
        return None
    rows = list(next(iter(report.ledger.values())))
    table = Table(title="Not equal between rows (mean per seed)", title_justify="left")
    for head in ("", *rows):
        table.add_column(head, justify="right" if head else "left")
    for name, values in report.ledger.items():
        table.add_row(name, *("-" if values[row] is None else f"{values[row]:,.4g}" for row in rows))
    return table


def markdown(report: Report) -> str:
    """Return the tables as Markdown."""
    parts = [f"`{report.command}`", ""]
    for (setting, dataset), lines in _settings(report.lines).items():
        parts += [f"### {dataset}, {setting}", "", _markdown_row(HEADS), _markdown_row(["---"] * len(HEADS))]
        parts += [_markdown_row(cells(line, report.stability.get(line.row))) for line in lines]
        parts.append("")
    if report.ledger:
        rows = list(next(iter(report.ledger.values())))
        parts += ["### Not equal between rows (mean per seed)", "", _markdown_row(["", *rows])]
        parts.append(_markdown_row(["---"] * (len(rows) + 1)))
        for name, values in report.ledger.items():
            numbers = ["-" if values[row] is None else f"{values[row]:,.4g}" for row in rows]
            parts.append(_markdown_row([name, *numbers]))
        parts.append("")
    if report.differences:
        parts += ["### Settings that differ", ""]
        for key, by in report.differences.items():
            parts.append(f"- `{key}`: " + ", ".join(f"{row} {value}" for row, value in by.items()))
        parts.append("")
    parts += [f"- failed: {text.splitlines()[0]}" for text in report.failed]
    return "\n".join(parts).rstrip() + "\n"


def _settings(lines: Sequence[Line]) -> dict[tuple[str, str], list[Line]]:
    found: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        found.setdefault((line.setting, line.dataset), []).append(line)
    return {key: sorted(mine, key=lambda line: -line.value) for key, mine in found.items()}


def _markdown_row(values: Sequence[str]) -> str:
    return "| " + " | ".join(values) + " |"
