"""The table of ``dare-eval plan``: ranges with two digits, and a line for whatever cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from dare_eval.commands.plan_rows import PlanRow
    from dare_eval.report.devices import Device
    from dare_eval.report.plan_cost import Range


def show_plan(console: Console, rows: Sequence[PlanRow], device: Device, total: Range | None) -> None:
    """Print one row per pair, the total, and what is impossible or worth knowing."""
    peaks = f"{device.half_tflops:.3g} TFLOPS in half, {device.single_tflops:.3g} in single precision"
    table = Table(title=f"Plan for {device.name}: {peaks}, {device.memory_gib:.0f} GiB", title_justify="left")
    for name in ("model", "data set"):
        table.add_column(name)
    for name in ("items", "prompt (longest)", "length", "NFE", "PFLOP", "time", "GiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        prompt = "-" if row.prompt_tokens is None else f"{row.prompt_tokens:.0f} ({row.longest_prompt})"
        names = [Text(("! " if row.impossible else "") + row.model, style="red" if row.impossible else "")]
        cells = [row.dataset, _text(row.items), prompt, _text(row.gen_length), count(row.nfe), span(row.pflop)]
        table.add_row(*names, *map(Text, [*cells, duration(row.hours), span(row.memory_gib)]))
    console.print(table)
    if total is not None:
        console.print(f"all together {duration(total)} of decoding on one device; start-up and scoring come on top")
    for row in rows:
        for line in row.impossible:
            console.print(Text(f"! {row.model} on {row.dataset}: {line}", style="red"))
    for line in dict.fromkeys(f"{row.model} on {row.dataset}: {note}" for row in rows for note in row.notes):
        console.print(Text(line))


def span(found: Range | None) -> str:
    """Return a range as two numbers of two digits, or one when they are the same."""
    if found is None:
        return "-"
    low, high = _digits(found.low), _digits(found.high)
    return low if low == high else f"{low}-{high}"


def count(found: Range | None) -> str:
    """Return forwards: exact where the spec fixes them, else a range of two digits."""
    return f"{found.low:.0f}" if found is not None and found.low == found.high else span(found)


def duration(found: Range | None) -> str:
    """Return a range of hours in the unit that suits its high end."""
    if found is None:
        return "-"
    unit, factor = ("h", 1.0) if found.high >= 1 else ("min", 60.0) if found.high >= 1 / 60 else ("s", 3600.0)
    return f"{span(found.scaled(factor))} {unit}"


def _digits(value: float) -> str:
    text = f"{value:.2g}"
    return f"{float(text):.0f}" if "e" in text and value >= 1 else text


def _text(value: int | None) -> str:
    return "-" if value is None else str(value)
