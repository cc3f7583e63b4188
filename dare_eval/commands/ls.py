"""``dare-eval ls``: what there is to run (models, benchmarks, presets, suites) and what the store knows."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

STORED = ("checkpoints", "runs")


def ls(
    kind: Annotated[
        str, typer.Argument(metavar="models|benchmarks|presets|suites|checkpoints|runs", help="What to list.")
    ] = "runs",
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List what can be run, or checkpoints and runs with their scores, newest last, as in: dare-eval ls models."""
    from rich.table import Table
    from rich.text import Text

    from dare_eval.errors import unknown
    from dare_eval.panels import output_console
    from dare_eval.presets.listing import LISTS
    from dare_eval.records.database import exists
    from dare_eval.records.listing import checkpoint_lines, run_lines
    from dare_eval.records.store import Store

    if kind not in (*LISTS, *STORED):
        raise unknown("kind of thing to list", kind, (*LISTS, *STORED))
    lines: list[dict[str, Any]] = []
    if kind in LISTS:
        lines = LISTS[kind]()
    elif exists(db):
        store = Store(db)
        lines = checkpoint_lines(store) if kind == "checkpoints" else run_lines(store)
    if as_json:
        typer.echo(json.dumps(lines, indent=1))
        return
    if not lines:
        output_console().print(f"no {kind} in the store; type: dare-eval index runs/")
        return
    shown = [name for name in lines[0] if name != "folder"]  # long; --json has it, and every command takes the name
    table = Table(*shown, show_lines=kind in STORED)
    for line in lines:
        table.add_row(*[Text(_cell(line[name])) for name in shown])
    output_console().print(table)


def _cell(value: Any) -> str:
    from dare_eval.records.safe import one_line

    if isinstance(value, list):
        return "\n".join(one_line(entry, 120) for entry in value)
    return "-" if value is None else one_line(value, 240)
