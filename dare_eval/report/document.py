"""A report as headings, paragraphs and tables, written as Markdown or as one HTML file that needs nothing else.

Every text is escaped for its format, so responses and names of strangers stay text. The same document always gives
the same bytes. Leaves out what a report says (``report.reproducibility``).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from dare_eval.records.safe import markdown_text, one_line

_WIDTH = 400
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #b3261e; --good: #1b6e3c; --note: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7fd6a0; --note: #ffcc80; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; }
.table { overflow-x: auto; margin-bottom: 1rem; } table { border-collapse: collapse; font-size: 13px; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 4.5rem; } td:first-child { min-width: 8rem; } p { overflow-wrap: anywhere; }
.off { color: var(--bad); font-weight: 600; } .match { color: var(--good); } .within { color: var(--note); }
"""
_CLASSES = {"off": "off", "incomplete": "off", "missing": "off", "match": "match", "within interval": "within"}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under column names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """A heading with what stands below it; ``level`` 2 is a section, 3 a part of one."""

    title: str
    body: Sequence[str | Table]
    level: int = 2


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    lead: Sequence[str]
    """Paragraphs before the first section."""
    parts: Sequence[Part]


def to_markdown(document: Document) -> str:
    """Return ``document`` as Markdown."""
    lines = [f"# {_md(document.title)}", ""]
    for paragraph in document.lead:
        lines += [_md(paragraph), ""]
    for part in document.parts:
        lines += [f"{'#' * part.level} {_md(part.title)}", ""]
        for entry in part.body:
            lines += [*(_md_table(entry) if isinstance(entry, Table) else [_md(entry)]), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def to_html(document: Document) -> str:
    """Return ``document`` as one HTML file: no script, no link, no image."""
    lines = ["<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">']
    lines += ['<meta name="viewport" content="width=device-width, initial-scale=1">']
    lines += [f"<title>{_html(document.title)}</title>", f"<style>{_STYLE}</style>", "</head>", "<body>"]
    lines += [f"<h1>{_html(document.title)}</h1>", *(f"<p>{_html(text)}</p>" for text in document.lead)]
    for part in document.parts:
        lines.append(f"<h{part.level}>{_html(part.title)}</h{part.level}>")
        for entry in part.body:
            lines += _html_table(entry) if isinstance(entry, Table) else [f"<p>{_html(entry)}</p>"]
    return "\n".join([*lines, "</body>", "</html>"]) + "\n"


def _md_table(table: Table) -> list[str]:
    head = "| " + " | ".join(_md(name) for name in table.columns) + " |"
    rows = ["| " + " | ".join(_md(cell) for cell in row) + " |" for row in table.rows]
    return [head, "|" + "---|" * len(table.columns), *rows]


def _html_table(table: Table) -> list[str]:
    head = "".join(f'<th scope="col">{_html(name)}</th>' for name in table.columns)
    lines = ['<div class="table"><table>', f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row in table.rows:
        lines.append("<tr>" + "".join(_cell(text) for text in row) + "</tr>")
    return [*lines, "</tbody></table></div>"]


def _cell(text: str) -> str:
    mark = _CLASSES.get(text)
    return f'<td class="{mark}">{_html(text)}</td>' if mark else f"<td>{_html(text)}</td>"


def _md(text: str) -> str:
    return markdown_text(text, _WIDTH)


def _html(text: str) -> str:
    return html.escape(one_line(text, _WIDTH), quote=True)
