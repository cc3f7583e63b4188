"""The table and the panels that end a run, as text a person reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dare_eval.panels import error_console
from dare_eval.records.summary import ResultRow
from dare_eval.runtime.failures import Failure
from dare_eval.runtime.report_rows import PairReport

UNPARSED_LIMIT = 2.0
"""Percent of replies without an extracted answer above which the row says so in red."""


def output_console() -> Console:
    """Return the console for the report; wide when output is piped, so that rows stay on one line."""
    return Console(width=None if sys.stdout.isatty() else 200, soft_wrap=not sys.stdout.isatty())


def show_table(console: Console, reports: Sequence[PairReport], groups: Sequence[ResultRow] = ()) -> None:
    """Print one row per model and data set, then group averages and the notes of each data set."""
    table = Table(title="Results (percent, 95 % intervals)", title_justify="left")
    for name in ("model", "data set", "metric", "score", "interval", "n", "unrecorded", "extracted"):
        table.add_column(name, justify="left" if name in ("model", "data set", "metric") else "right", no_wrap=True)
    for name in ("NFE", "tok/forward", "tok/s", "stock evaluator"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("also")
    for report in reports:
        table.add_row(*_cells(report))
    for row in groups:
        table.add_row(row.model, row.dataset, row.metric, _number(row.value), _interval(row), _items(row), *[""] * 7)
    console.print(table)
    for dataset, notes in {report.dataset: report.notes for report in reports if report.notes}.items():
        for note in notes:
            console.print(Text(f"{dataset}: {note}"))


def show_failures(failures: Iterable[Failure], console: Console | None = None) -> None:
    """Print one panel per failure: model, data set, item, cause and remedy."""
    console = console or error_console()
    for failure in failures:
        body = Text(failure.cause, style="bold")
        lines = {
            "model": failure.model, "data set": failure.dataset, "item": failure.item, "seen": failure.seen,
            "allowed": failure.allowed, "remedy": failure.remedy, "log": failure.log,
        }  # fmt: skip
        for label, value in lines.items():
            if value:
                body.append(f"\n{label:>8}: ", style="cyan")
                body.append(value, style="not bold")
        title = f"{failure.model} on {failure.dataset} failed ({failure.stage})"
        console.print(Panel(body, title=title, border_style="red", title_align="left"))


def _cells(report: PairReport) -> list[str | Text]:
    row = report.rows[0]
    extracted = _number(row.extraction_rate)
    score = Text(_number(row.value) if row.value is not None else "failed" if report.failure else "-")
    if not report.complete:
        score.stylize("red")
    return [
        row.model,
        row.dataset,
        row.metric,
        score,
        _interval(row),
        _items(row),
        str(row.unrecorded),
        Text(extracted, style="red" if _much_unparsed(row) else ""),
        _number(row.nfe, 1),
        _number(row.tpf, 2),
        _number(row.tps, 0),
        _stock(report),
        Text("; ".join(_also(report)), style="red" if _much_unparsed(row) else ""),
    ]


def _much_unparsed(row: ResultRow) -> bool:
    return row.extraction_rate is not None and row.extraction_rate < 100 - UNPARSED_LIMIT


def _also(report: PairReport) -> list[str]:
    found = [f"{row.metric} {_number(row.value)} {_interval(row)}".rstrip() for row in report.rows[1:]]
    if report.malformed is not None:
        found.append(f"malformed {report.malformed} of {report.rows[0].n}")
    head = report.rows[0]
    if _much_unparsed(head):  # in words as well: piped output has no colours
        found.insert(0, f"no answer found in {100 - (head.extraction_rate or 0.0):.1f} % (limit {UNPARSED_LIMIT:g})")
    found += [label for label in head.labels if label.startswith(("subset", "mean of", "no verdict", "choices"))]
    if report.disputed:
        found.append(f"{report.disputed} verdicts differ from the stock evaluator's (show --diff-scorer)")
    if head.unusable_golds:
        found.append(f"{head.unusable_golds} unusable references")
    if head.truncated is not None:
        found.append(f"cut by length {_number(head.truncated)}")
    if head.eos_share:
        found.append(f"padding {_number(head.eos_share)}")
    if head.errors or head.unscored:
        found.append(f"{head.errors} failed, {head.unscored} unscored")
    if not report.complete:
        found.append("incomplete")
    return found


def _stock(report: PairReport) -> str:
    if report.upstream.get("value") is not None:
        return _number(report.upstream["value"])
    status = str(report.upstream.get("status", "-"))
    return "-" if status == "not run" else status


def _items(row: ResultRow) -> str:
    return f"{row.n}/{'?' if row.expected is None else row.expected}"


def _interval(row: ResultRow) -> str:
    return f"[{row.low:.1f}, {row.high:.1f}]" if row.low is not None and row.high is not None else ""


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
