"""The overview's table as HTML: models in rows, benchmarks in columns, everything a score needs in its cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dare_eval.report.ties import Tie
from leaderboard.data.board import AUTOREGRESSIVE, Cell
from leaderboard.data.overview import Column, Overview, Row
from leaderboard.markup import Markup, el, joined, wrapped

Link = Callable[[Cell], str]
RunLink = Callable[[int], str]
_SPEC = ("steps", "threshold", "factor", "block_length", "gen_length", "temperature", "cfg_scale")
_UNITS = {"steps": "{} steps", "block_length": "block {}", "gen_length": "length {}", "temperature": "T {}"}


def matrix(found: Overview, link: Link, run_link: RunLink) -> Markup:
    """Return the table of one page; ``link`` gives the address of a result's items, ``run_link`` that of a run."""
    head = el("tr", el("th", "Model", scope="col"), *[_column(column) for column in found.columns])
    rows = [_row(row, found, link, run_link) for row in found.rows]
    body = el("table", el("thead", head), el("tbody", *rows), class_="dare fold tall")
    return wrapped(body, "Scores by model and benchmark")


def settings_line(cell: Cell) -> str:
    """Return how a result was decoded, in one line."""
    return spec_line(cell.spec, "left to right" if cell.kind == AUTOREGRESSIVE else "policy not recorded")


def spec_line(spec: Mapping[str, Any], otherwise: str = "policy not recorded") -> str:
    """Return the decode settings that tell results apart, in one line; ``otherwise`` stands for a missing policy."""
    if not spec:
        return "decode spec not recorded"
    parts = [str(spec.get("policy") or otherwise)]
    for name in _SPEC:
        value = spec.get(name)
        if value not in (None, 0, 0.0) or (name == "temperature" and value == 0):
            parts.append(_UNITS.get(name, name + " {}").format(value))
    parts += [f"cache {spec['cache']}"] if spec.get("cache") not in (None, "none") else []
    parts += [str(spec["engine"])] if spec.get("engine") not in (None, "native") else []
    return " · ".join(parts)


def cost_line(cell: Cell) -> str:
    """Return items and cost of a score."""
    n = f"n {cell.n:,}" if cell.expected in (None, cell.n) else f"n {cell.n:,} of {cell.expected:,}"
    nfe = "NFE not recorded" if cell.nfe is None else f"NFE {cell.nfe:.4g}"
    return " · ".join([n, nfe, *([] if cell.tps is None else [f"{cell.tps:.4g} tok/s"])])


def interval(cell: Cell) -> str:
    """Return a score's 95 % interval in percent."""
    return "" if cell.low is None or cell.high is None else f"{cell.low:.1f}–{cell.high:.1f}"  # noqa: RUF001


def tie_mark(tie: Tie | None) -> Markup | None:
    """Return the badge of a tie group: its number, and a letter for pools other than the best result's."""
    if tie is None:
        return None
    name = ("" if tie.pool == 0 else chr(ord("a") + min(tie.pool, 25))) + str(tie.group)
    many = f"{tie.size} results cannot be told apart" if tie.size > 1 else "told apart from all others compared"
    title = f"tie group {name}: {many}" + ("; answers another question than group 1" if tie.pool else "")
    return el("span", name, class_="dare-tie" + (" first" if (tie.pool, tie.group) == (0, 1) else ""), title=title)


def _column(column: Column) -> Markup:
    power = f"n {column.n:,}; shows differences from {column.detectable:.1f} points"
    return el("th", column.dataset, el("div", f"{column.metric} %", class_="dare-small"), title=power, scope="col")


def _row(row: Row, found: Overview, link: Link, run_link: RunLink) -> Markup:
    known_as = "" if row.name == row.model else f", run as {row.model}"
    name = [el("b", row.name)]
    if row.evaluation is not None:
        name.append(el("div", row.family + known_as, class_="dare-small"))
        name.append(el("div", "run ", el("a", row.run, href=run_link(row.evaluation)), class_="dare-small"))
    if row.status != "finished":
        name.append(el("div", row.status, class_="dare-small dare-warn"))
    named = row.evaluation is None
    cells = [_cell(row.cells.get(column.key), column, found.ties, link, named=named) for column in found.columns]
    return el("tr", el("td", *name), *cells)


def _cell(cell: Cell | None, column: Column, ties: Mapping[int, Tie], link: Link, *, named: bool) -> Markup:
    label = f"{column.dataset}, {column.metric} %"
    if cell is None:
        return el("td", "", class_="empty", data_label=label)
    if cell.value is None:
        score: Markup = el("a", "no score", href=link(cell))
    else:
        value = el("a", f"{cell.value:.1f}", href=link(cell), class_="dare-score")
        score = joined([value, el("span", interval(cell), class_="dare-ci"), tie_mark(ties.get(cell.id))], " ")
    parts = [
        el("div", score),
        el("div", cell.name, class_="dare-small") if named else None,
        el("div", cost_line(cell), class_="dare-small"),
        el("div", settings_line(cell), class_="dare-small"),
        _notes(cell),
    ]
    return el("td", *parts, class_=None if cell.complete else "dare-warn", data_label=label)


def _notes(cell: Cell) -> Markup | None:
    if not cell.labels:
        return None
    count = f"{len(cell.labels)} note" + ("s" if len(cell.labels) > 1 else "")
    listed = [el("li", label) for label in cell.labels[:20]]
    return el("details", el("summary", count), el("ul", *listed))
