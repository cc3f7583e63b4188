"""``dare-eval show RUN``: a run's table again, the items on which two scorers differ, or one item in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dare_eval.records.items import ItemRecord
    from dare_eval.records.runs import Run


def show(
    run: Annotated[Path, typer.Argument(help="Run folder (work folder/timestamp) or work folder (its latest run).")],
    diff_scorer: Annotated[
        bool, typer.Option("--diff-scorer", help="List items where our scorer and the stock one differ.")
    ] = False,
    item: Annotated[
        str | None, typer.Option(help="Show one item in full: its id (or the start of it), or its position.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    bench: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show what a run found; with --diff-scorer, where our scorer and the stock one disagree."""
    from dare_eval.records.run_damage import run_damage
    from dare_eval.records.runs import find_run

    found = find_run(run)
    pairs = _chosen(found, model, bench)
    for note in run_damage(found, pairs):
        typer.echo(note, err=True)
    if diff_scorer:
        _show_differences(found, pairs, as_json)
    elif item is not None:
        _show_item(found, pairs, item)
    else:
        _show_table(found, pairs, as_json)


def _chosen(run: Run, model: str | None, bench: str | None) -> list[tuple[str, str]]:
    """Return the results that are asked for; a name that the run does not have is refused, not an empty table."""
    from dare_eval.errors import unknown

    pairs = run.results()
    for kind, name, known in (("model", model, [m for m, _ in pairs]), ("data set", bench, [d for _, d in pairs])):
        if name is not None and name not in known:
            raise unknown(f"{kind} of this run", name, sorted(set(known)))
    return [(m, d) for m, d in pairs if model in (None, m) and bench in (None, d)]


def _show_table(run: Run, pairs: list[tuple[str, str]], as_json: bool) -> None:
    from dare_eval.runtime.report_rows import pair_report
    from dare_eval.runtime.report_table import output_console, show_failures, show_table

    reports = [pair_report(run.folder, model, dataset) for model, dataset in pairs]
    if as_json:
        typer.echo(json.dumps([row.to_dict() for report in reports for row in report.rows], indent=1))
        return
    show_table(output_console(), reports)
    show_failures(report.failure for report in reports if report.failure)


def _show_differences(run: Run, pairs: list[tuple[str, str]], as_json: bool) -> None:
    rows = [_difference(*where) for where in _differing(run, pairs)]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    from rich.table import Table
    from rich.text import Text

    from dare_eval.records.safe import one_line
    from dare_eval.runtime.report_table import output_console

    console = output_console()
    table = Table(title="Items on which the scorers differ", title_justify="left")
    for name in ("model", "data set", "item", "reference", "ours", "rule", "our answer", "stock", "stock answer"):
        table.add_column(name)
    for row in rows:
        table.add_row(*(Text(one_line(value)) for value in row.values()))
    if rows:
        console.print(table)
    for (name, dataset), (differ, both) in _counts(run, pairs).items():
        console.print(f"{name} on {dataset}: {differ} of {both} items that both scored differ")


def _differing(run: Run, pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str, ItemRecord]]:
    for model, dataset in pairs:
        for record in run.items(model, dataset).records:
            if record.disputed:
                yield model, dataset, record


def _both(record: ItemRecord) -> bool:
    return record.correct is not None and record.upstream_correct is not None


def _counts(run: Run, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int]]:
    counts = {}
    for model, dataset in pairs:
        both = [record for record in run.items(model, dataset).records if _both(record)]
        counts[model, dataset] = (sum(one.disputed for one in both), len(both))
    return counts


def _difference(model: str, dataset: str, record: ItemRecord) -> dict[str, Any]:
    return {
        "model": model,
        "dataset": dataset,
        "item": record.index,
        "reference": record.reference,
        "correct": record.correct,
        "rule": record.rule,
        "extracted": record.extracted,
        "upstream_correct": record.upstream_correct,
        "upstream_extracted": record.upstream_extracted,
    }


def _show_item(run: Run, pairs: list[tuple[str, str]], item: str) -> None:
    from dare_eval.errors import DataError

    for model, dataset in pairs:
        for record in run.items(model, dataset).records:
            if record.item_id.startswith(item) if len(item) >= 6 else str(record.index) == item:
                typer.echo(json.dumps({"model": model, "dataset": dataset, **record.to_dict()}, indent=1))
                return
    raise DataError("no such item in this run", seen=item, allowed="a position, or at least 6 characters of an item id")
