"""``dare-eval ls checkpoints|runs``: what the store knows."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

KINDS = ("checkpoints", "runs")


def ls(
    kind: Annotated[str, typer.Argument(metavar="checkpoints|runs", help="What to list.")] = "runs",
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/dare.db.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List checkpoints or runs with their scores, newest last, as in: dare-eval ls checkpoints."""
    from rich.table import Table
    from rich.text import Text

    from dare_eval.errors import unknown
    from dare_eval.panels import output_console
    from dare_eval.records.listing import checkpoint_lines, run_lines
    from dare_eval.records.safe import one_line
    from dare_eval.records.store import Store

    if kind not in KINDS:
        raise unknown("kind of thing to list", kind, KINDS)
    store = Store(db)
    lines: list[dict[str, Any]] = checkpoint_lines(store) if kind == "checkpoints" else run_lines(store)
    if as_json:
        typer.echo(json.dumps(lines, indent=1))
        return
    if not lines:
        output_console().print(f"no {kind} in the store; type: dare-eval index runs/")
        return
    table = Table(*lines[0].keys())
    for line in lines:
        table.add_row(*[Text(one_line(_cell(value), 80)) for value in line.values()])
    output_console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(str(entry) for entry in value)
    return "-" if value is None else str(value)
