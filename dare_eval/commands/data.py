"""``dare-eval data``: is the data of a config there, and does a training file repeat benchmark items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dare_eval.runtime.data_report import DataEntry

app = typer.Typer(no_args_is_help=True, help="Check the data of a config; look for benchmark items in training data.")


@app.command()
def check(
    config: Annotated[Path, typer.Argument(help="OpenCompass config, such as configs/eval/tiny_sudoku.py.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List each data set with path, rows, sha256, licence and how to get it; exit code 4 when one is missing."""
    from dataclasses import asdict

    from dare_eval.commands.run_config import load_config
    from dare_eval.errors import DataError, UsageError
    from dare_eval.runtime.data_report import inspect_datasets

    cfg = load_config(config)
    combined = [one for part in cfg.get("model_dataset_combinations") or () for one in part["datasets"]]
    listed: list[Any] = []
    for one in [*(cfg.get("datasets") or ()), *combined]:
        listed += [one] if one not in listed else []
    if not listed:
        raise UsageError("the config names no data sets", seen=config, remedy="define datasets = [...]")
    entries = inspect_datasets(listed)
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
    else:
        _table(entries)
    missing = [entry for entry in entries if entry.status != "present"]
    if missing:
        first = missing[0]
        raise DataError(
            f"{len(missing)} of {len(entries)} data sets cannot be read: {', '.join(e.dataset for e in missing[:8])}",
            seen=f"{first.path}: {first.why}",
            remedy=f"{first.get}; then export DARE_DATA=<folder that holds data/>",
        )


def _table(entries: Sequence[DataEntry]) -> None:
    from rich.table import Table

    from dare_eval.panels import output_console

    table = Table("data set", "benchmark", "status", "rows", "sha256", "licence", "path", "how to get it")
    colour = {"present": "green", "missing": "red", "broken": "red"}
    for e in entries:
        status = f"[{colour[e.status]}]{e.status}[/]" + (f" {e.why}" if e.status == "broken" else "")
        rows = "-" if e.rows is None else str(e.rows)
        table.add_row(e.dataset, e.benchmark, status, rows, e.sha256[:12] or "-", e.licence, e.path, e.get)
    output_console().print(table)


@app.command()
def overlap(
    train: Annotated[Path, typer.Argument(help="Training rows: JSON lines.")],
    bench: Annotated[Path, typer.Argument(help="Benchmark rows (JSON lines) or an OpenCompass config.")],
    field: Annotated[str | None, typer.Option(help="Field with the text, in both files.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Matches to print.")] = 10,
) -> None:
    """Look for benchmark items in training data: exact, normalised, shared run of 13 words."""
    from dare_eval.errors import DataError
    from dare_eval.records.overlap import overlap as compare
    from dare_eval.runtime.data_report import texts_of

    items = _bench_texts(bench, field)
    if not items:
        raise DataError("there are no benchmark items to look for", seen=bench)
    report = compare((texts_of(row, field) for row in _rows(train)), items)
    if not report.train_texts:
        raise DataError("there are no training rows to look in", seen=train)
    for test in ("exact", "normalised", "ngram"):
        typer.echo(f"{test}: {report.count(test)} of {report.bench_items} items")
    typer.echo(f"clean: {len(report.clean_indices)} of {report.bench_items} items ({report.train_texts} training rows)")
    for match in report.matches[:limit]:
        shown = " ".join(items[match.bench_index].split())[:100]
        typer.echo(f"  item {match.bench_index} ({match.test}, training row {match.train_index}): {shown}")


def _bench_texts(bench: Path, field: str | None) -> list[str]:
    from dare_eval.runtime.data_report import texts_of

    if bench.suffix != ".py":
        return [texts_of(row, field) for row in _rows(bench)]
    from dare_eval.commands.run_config import load_config
    from dare_eval.runtime.built import build
    from dare_eval.runtime.data_paths import share_data_root

    share_data_root()
    return [texts_of(row, field) for cfg in load_config(bench).get("datasets", []) for row in build(cfg).test]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON-lines file; raises ``DataError`` naming the line that is not one."""
    from dare_eval.errors import DataError

    if not path.is_file():
        raise DataError("there is no such file", seen=path)
    with path.open("rb") as lines:  # bytes: a line that is not UTF-8 is refused like one that is not JSON
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8"))
            except ValueError as error:
                raise DataError(f"line {number} is not JSON: {error}", seen=path) from error
            if not isinstance(row, dict):
                raise DataError(f"line {number} is not a JSON object", seen=path, remedy="one object per line")
            yield row
