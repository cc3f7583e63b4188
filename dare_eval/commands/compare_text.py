"""Prints a comparison on a terminal; every text of a model is shown escaped."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dare_eval.records.compare import BenchmarkComparison, Comparison, verdict
from dare_eval.records.ledger import Inequality
from dare_eval.records.safe import one_line
from dare_eval.records.templates import OverTemplates

_COSTS = (("nfe", "NFE"), ("tpf", "tokens/forward"), ("tps", "tokens/s"))


def show_comparison(
    found: Comparison, console: Console, *, items: int, templates: Sequence[OverTemplates] = ()
) -> None:
    """Print differences, cost, reasons, flipped items and unequal budgets."""
    console.print(Text(f"A = {one_line(found.a, 100)}\nB = {one_line(found.b, 100)}"))
    console.print(_differences(found))
    for bench in found.benchmarks:
        _explain(bench, console)
    if templates:
        console.print(_templates(templates))
    for bench in found.benchmarks:
        if bench.flips and items:
            console.print(_flips(bench, items))
    if found.unequal:
        console.print(_budgets(found.unequal))
    for line in found.missing:
        console.print(Text(f"not compared: {line}", style="yellow"))


def _differences(found: Comparison) -> Table:
    table = Table(title="B minus A, same items (95 % interval, p adjusted by Holm)", title_justify="left")
    table.caption = "detects: smallest true difference that these items show with 80 % power, in points"
    table.caption_justify = "left"
    for name in (
        "benchmark",
        "metric",
        "n",
        "A",
        "B",
        "delta",
        "interval",
        "p",
        "p Holm",
        "won/lost",
        "detects",
        "verdict",
    ):
        table.add_column(name, justify="left" if name in ("benchmark", "metric", "verdict") else "right")
    for bench in found.benchmarks:
        cells = [one_line(bench.dataset), one_line(bench.metric), str(bench.n)]
        test = bench.test
        if test is None:
            cells += ["-"] * 8
        else:
            cells += [f"{bench.value_a:.2f}", f"{bench.value_b:.2f}", f"{100 * test.delta:+.2f}"]
            cells += [f"{100 * test.low:+.2f} .. {100 * test.high:+.2f}", f"{test.p:.2g}", f"{bench.p_holm:.2g}"]
            cells += [f"{test.wins}/{test.losses}", "-" if bench.detectable is None else f"{bench.detectable:.1f}"]
        mark = " *" if test is not None and bench.labels else ""
        table.add_row(*[Text(cell) for cell in [*cells, verdict(bench) + mark]])
    return table


def _explain(bench: BenchmarkComparison, console: Console) -> None:
    name = f"{one_line(bench.dataset)} {one_line(bench.metric)}"
    for reason in bench.refused:
        console.print(Text(f"{name}: refused: {one_line(reason, 140)}", style="red"))
    for reason in bench.labels:
        console.print(Text(f"{name}: * not of the model alone: {one_line(reason, 140)}", style="yellow"))
    if bench.floor is not None:
        floor = f"noise floor {bench.floor:.2f} % of items flip, {one_line(bench.floor_source, 120)}"
        console.print(Text(f"{name}: {floor}", style="dim"))
    for reason in bench.comparability.notes:
        console.print(Text(f"{name}: note: {one_line(reason, 140)}", style="dim"))
    if bench.test is not None and any(x is not None for pair in bench.cost.values() for x in pair):
        costs = ", ".join(f"{label} {_number(a)} / {_number(b)}" for key, label in _COSTS for a, b in [bench.cost[key]])
        console.print(Text(f"{name}: cost A / B: {costs}", style="dim"))


def _flips(bench: BenchmarkComparison, items: int) -> Table:
    won, lost = [f for f in bench.flips if f.won], [f for f in bench.flips if not f.won]
    half = (items + 1) // 2
    shown = won[: max(half, items - len(lost))] + lost[: max(items - half, items - len(won))]
    title = f"{one_line(bench.dataset)}: {len(bench.flips)} items flipped, {len(shown)} shown"
    table = Table("item", "id", "", "reference", "A answered", "B answered", title=title, title_justify="left")
    for flip in sorted(shown, key=lambda f: f.index):
        cells = [str(flip.index), flip.item_id[:12], "B right" if flip.won else "A right"]
        cells += [one_line(value, 40) for value in (flip.reference, flip.extracted_a, flip.extracted_b)]
        table.add_row(*[Text(cell) for cell in cells])
    return table


def _templates(rows: Sequence[OverTemplates]) -> Table:
    names = ("benchmark", "metric", "templates", "mean delta", "spread", "same sign")
    table = Table(*names, title="Over prompt templates (points)", title_justify="left")
    for row in rows:
        cells = [one_line(row.dataset), one_line(row.metric), str(len(row.templates))]
        table.add_row(
            *[Text(c) for c in [*cells, f"{row.mean:+.2f}", f"{row.spread:.2f}", f"{100 * row.stable:.0f} %"]]
        )
    return table


def _budgets(rows: Sequence[Inequality]) -> Table:
    table = Table("budget", "A", "B", "B / A", title="What training did not spend equally", title_justify="left")
    for row in rows:
        table.add_row(row.name, _number(row.a), _number(row.b), _number(row.ratio))
    return table


def _number(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
