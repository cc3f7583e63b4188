"""``dare-eval export FORMAT``: results as CSV, JSON, Markdown or LaTeX; item records as Parquet or Inspect logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dare_eval.records.store import Store
    from dare_eval.records.tables import Result

ITEMS = ("parquet", "inspect")
"""Formats that hold items, not results."""


def export(
    style: Annotated[str, typer.Argument(metavar="csv|json|markdown|latex|parquet|inspect", help="What to write.")],
    run: Annotated[str | None, typer.Option(help="Only this run (folder, id or checkpoint); items need it.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write (items: folder); default standard output.")] = None,
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None,
) -> None:
    """Write results with interval, n, cost and decode spec; bold only where significant (paired, Holm).

    Example: dare-eval export markdown --out results.md
    """
    from dare_eval.errors import UsageError, unknown
    from dare_eval.panels import output_console
    from dare_eval.records.best import PairwiseTests, significant_best
    from dare_eval.records.database import exists
    from dare_eval.records.exports import FORMATS, export_text
    from dare_eval.records.store import Store

    if style not in (*FORMATS, *ITEMS):
        raise unknown("export format", style, (*FORMATS, *ITEMS))
    if style in ITEMS:
        if run is None or out is None:
            raise UsageError(f"{style} writes the item records of one run", remedy="--run RUN --out FOLDER")
        written = (_parquet if style == "parquet" else _inspect)(run, out, db)
        output_console().print(f"{written} files in {out}")
        return
    results: Sequence[Result] = []
    text = export_text(results, style)
    if exists(db):  # reading makes no store
        store = Store(db)
        results = _chosen(store, run, db)
        runs = {evaluation.id: evaluation.run_id for evaluation in store.evaluations()}
        text = export_text(results, style, significant_best(results, PairwiseTests(store)), runs)
    if not results:
        typer.echo("no result to export in the store; type: dare-eval index runs/", err=True)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        output_console().print(f"{len(results)} results in {out}")


def _chosen(store: Store, name: str | None, db: str | None) -> Sequence[Result]:
    """Return all results of the store, or those of the run that ``name`` means."""
    from dare_eval.records.locate import locate

    results = store.results()
    if name is None:
        return results
    folder = str(locate(name, db).run.folder.resolve())
    ids = {evaluation.id for evaluation in store.evaluations() if evaluation.folder == folder}
    return [result for result in results if result.evaluation_id in ids]


def _parquet(name: str, out: Path, db: str | None) -> int:
    from dare_eval.records.item_table import write_parquet
    from dare_eval.records.locate import locate

    run = locate(name, db).run
    pairs = run.results()
    for model, dataset in pairs:
        write_parquet(out / model / f"{dataset}.parquet", run.items(model, dataset).records)
    return len(pairs)


def _inspect(name: str, out: Path, db: str | None) -> int:
    from dare_eval.records.locate import locate
    from dare_eval.report.inspect_log import write_inspect_logs

    return len(write_inspect_logs(locate(name, db).run, out))
