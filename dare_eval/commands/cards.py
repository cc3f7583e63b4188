"""``dare-eval cards [NAME]``: published numbers, and which differences of a published table are more than noise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dare_eval.presets.cards import Card, CardTable


def cards(
    name: Annotated[str | None, typer.Argument(help="A card, a table of algorithms (dare-llada), or a model.")] = None,
    base: Annotated[str | None, typer.Option(help="Column of a table that the others are compared with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List published numbers with interval and source; of a table, what is more than noise and what is trivial.

    Example: dare-eval cards dare-llada
    """
    import dataclasses

    from dare_eval.errors import unknown
    from dare_eval.presets.cards import known_cards, tables

    if name in tables():
        table = tables()[name]
        if base is not None and base not in table.columns:
            raise unknown(f"column of {name}", base, table.columns)
        _show_table(dataclasses.replace(table, base=base or table.base), as_json)
        return
    found = [card for card in known_cards().values() if name in (None, card.name, card.model)]
    if not found:
        known = {*known_cards(), *tables(), *(card.model for card in known_cards().values())}
        raise unknown("card, table or model", str(name), known)
    if as_json:
        typer.echo(json.dumps([_line(card) for card in found], indent=1))
        return
    _print(["card", "score", "95 % interval", "n", "settings", "source", "can run"], map(_cells, found))
    typer.echo(f"tables with the noise of their differences: {', '.join(tables())}; type: dare-eval cards NAME")


def _line(card: Card) -> dict[str, Any]:
    from dataclasses import asdict

    from dare_eval.report.published import below_trivial, published_interval

    below = dict(below_trivial(card.benchmark, card.score))
    interval = published_interval(card.score, card.n)
    return {**asdict(card), "interval": interval, "below_trivial": below, "reproducible": card.runnable}


def _cells(card: Card) -> list[str]:
    from dare_eval.report.published import below_trivial, published_interval

    bounds = published_interval(card.score, card.n)
    score = f"{card.score:.{card.decimals}f}"
    for trivial, value in below_trivial(card.benchmark, card.score):
        score += f" (below {trivial}, {value:g})"
    settings = "not stated" if card.spec is None else ", ".join(f"{k} {v}" for k, v in card.spec.items()) or "default"
    return [
        card.name,
        score,
        "-" if bounds is None else f"{bounds[0]:.1f} to {bounds[1]:.1f}",
        " or ".join(map(str, card.n)) or "not stated",
        settings,
        card.source,
        "yes" if card.runnable else "no",
    ]


def _show_table(table: CardTable, as_json: bool) -> None:
    from dataclasses import asdict

    from dare_eval.report.published import below_trivial, differences

    found = differences(table)
    if as_json:
        lines = [{**asdict(one), "delta": one.delta, "outside_noise": one.outside} for one in found]
        typer.echo(json.dumps({"table": table.name, "source": table.source, "differences": lines}, indent=1))
        return
    typer.echo(f"{table.title}\n{table.source}")
    rows = []
    for one in found:
        bounds = "-" if one.low is None else f"{one.low:+.1f} .. {one.high:+.1f}"
        p = "-" if one.p is None else f"{one.p:.2g}"
        adjusted = "-" if one.p_holm is None else f"{one.p_holm:.2g}"
        name = one.benchmark + ("" if one.n is None else f" (n {one.n})")
        score, base = f"{one.score:.{table.decimals}f}", f"{one.base:.{table.decimals}f}"
        rows.append([name, one.column, score, base, f"{one.delta:+.1f}", bounds, p, adjusted, _verdict(one)])
    _print(["benchmark", "column", "score", table.base, "delta", "interval", "p", "p Holm", "verdict"], rows)
    typer.echo("unpaired tests: no item records were published; n is the fewest items the source may have used")
    for bench in table.rows:
        outside = [one.column for one in found if one.benchmark == bench and one.outside]
        typer.echo(f"outside the noise on {bench}: {', '.join(outside) or 'none'}")
        for column, value in zip(table.columns, table.rows[bench], strict=True):
            for trivial, level in below_trivial(bench, value):
                typer.echo(f"below {trivial} ({level:g} %) on {bench}: {column} {value:g}")


def _verdict(one: Any) -> str:
    if one.outside is None:
        words = "unknown n"
    elif one.depends:
        words = "depends on n"
    else:
        words = ("better" if one.delta > 0 else "worse") if one.outside else "within noise"
    return words + "".join(f", below {name}" for name in one.below)


def _print(columns: Any, rows: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    from dare_eval.panels import output_console

    table = Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))
    output_console().print(table)
