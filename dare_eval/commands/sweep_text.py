"""The tables of ``dare-eval sweep``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dare_eval.report.sweep import Curve, Point, Stability, Templates, curves, marks, over_templates

if TYPE_CHECKING:
    from dare_eval.runtime.sweep_config import Skipped, Sweep

MARK = "*"


def show_sweep(console: Console, planned: Sweep, points: Sequence[Point]) -> None:
    """Print settings with quality and cost, what was skipped, AUP per method, and the spread over templates."""
    console.print(_points_table(points))
    console.print(f"{MARK} no other setting has at least this score with fewer forwards (point estimates)")
    _show_skipped(console, planned.skipped)
    found = curves(points)
    if found:
        console.print(_aup_table(found))
    rows, stability = over_templates(points)
    if rows:
        console.print(_templates_table(rows))
        for one in stability:
            console.print(Text(_order(one)))


def _points_table(points: Sequence[Point]) -> Table:
    table = Table(title="Settings by forwards (percent, 95 % intervals)", title_justify="left")
    for name in ("data set", "setting"):
        table.add_column(name, no_wrap=True)
    for name in ("", "score", "interval", "n", "NFE", "tok/forward", "tok/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for point, mark in zip(points, marks(points), strict=True):
        row = point.row
        interval = f"[{row.low:.1f}, {row.high:.1f}]" if row.low is not None and row.high is not None else ""
        items = Text(f"{row.n}/{'?' if row.expected is None else row.expected}", style="" if row.complete else "red")
        cost = [_number(row.nfe, 1), _number(row.tpf, 2), _number(row.tps, 0)]
        names = [Text(point.dataset), Text(point.setting)]
        table.add_row(*names, MARK if mark else "", _number(row.value, 1), Text(interval), items, *cost)
    return table


def _show_skipped(console: Console, skipped: Iterable[Skipped]) -> None:
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        reasons.setdefault(f"{one.reason}" + (f" (works: {one.remedy})" if one.remedy else ""), []).append(one.label)
    for reason, labels in reasons.items():
        console.print(Text(f"skipped {'; '.join(dict.fromkeys(labels))}: {reason}", style="yellow"))


def _aup_table(found: Iterable[Curve]) -> Table:
    table = Table(title="Accuracy under parallelism (AUP), 95 % bootstrap over items", title_justify="left")
    for name in ("data set", "method", "settings", "AUP", "interval", "also"):
        table.add_column(name, justify="left" if name in ("data set", "method", "also") else "right")
    for one in found:
        interval = f"[{one.low:.1f}, {one.high:.1f}]" if one.low is not None and one.high is not None else "-"
        also = f"fastest setting beyond the tolerated loss; {one.kept} settings kept" if one.beyond else ""
        cells = [one.dataset, one.curve, str(one.points), f"{one.value:.1f}", interval, also]
        table.add_row(*map(Text, cells))
    return table


def _templates_table(rows: Iterable[Templates]) -> Table:
    table = Table(title="Over templates (percent)", title_justify="left")
    for name in ("data set", "setting", "templates", "mean", "spread", "rank"):
        table.add_column(name, justify="left" if name in ("data set", "setting") else "right")
    for row in rows:
        rank = f"{row.best_rank}" if row.best_rank == row.worst_rank else f"{row.best_rank}-{row.worst_rank}"
        cells = [row.base, row.setting, str(row.templates), f"{row.mean:.1f}", f"{row.spread:.1f}", rank]
        table.add_row(*map(Text, cells))
    return table


def _order(one: Stability) -> str:
    tau = "not defined (a template scores all settings alike)" if one.tau is None else f"{one.tau:.2f}"
    best = "the same setting is best in each" if one.same_best else "the best setting depends on the template"
    return f"{one.base}: order of the settings over {one.templates} templates: Kendall's tau {tau}; {best}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
