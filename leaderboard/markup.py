"""HTML that cannot be broken by data: every text is escaped, only elements made here are markup.

Used by the pages for tables that fold into cards on a phone, and by the static snapshot. Styles take their colours from
the page around them, so that light and dark both work.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from dare_eval.records.safe import visible

_VOID = frozenset({"br", "hr", "img", "meta", "link", "input"})


class Markup(str):
    """Text that is HTML already; made by :func:`el` and :func:`joined` only."""

    __slots__ = ()


def el(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children that are no :class:`Markup` are escaped, None is left out.

    ``class_`` and ``for_`` lose their underscore, other underscores become hyphens; True is a bare attribute, None and
    False leave it out.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items() if not _absent(value))
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(children: Iterable[object], gap: str = "") -> Markup:
    """Return ``children`` one after the other, escaped unless they are markup."""
    shown = [child for child in children if child is not None]
    return Markup(html.escape(gap).join(child if isinstance(child, Markup) else text(child) for child in shown))


def text(value: object) -> Markup:
    """Return ``value`` as text: escaped, and characters that would act rather than show written out."""
    return Markup(html.escape(visible(value)))


def _absent(value: object) -> bool:
    return value is None or value is False  # 0 is a value


def _attribute(name: str, value: object) -> str:
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{text(value)}"'


STYLE = """
.stMainBlockContainer { padding-top: 4rem; padding-bottom: 3rem; }
.stMainBlockContainer h1 { font-size: 2rem; }
.dare-wrap { overflow-x: auto; max-width: 100%; }
table.dare { border-collapse: collapse; width: 100%; font-size: .875rem; line-height: 1.35; }
table.dare th, table.dare td { border: 0; border-bottom: 1px solid rgba(128,128,128,.35); padding: .45rem .6rem;
  text-align: left; vertical-align: top; overflow-wrap: anywhere; }
table.dare thead th { font-weight: 600; border-bottom-width: 2px; overflow-wrap: normal; }
table.dare tbody tr:hover { background: rgba(128,128,128,.08); }
table.dare .num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dare a, a.dare { color: inherit; text-decoration: underline; text-underline-offset: .15em; }
.dare a:focus-visible, .dare summary:focus-visible { outline: 2px solid #56B4E9; outline-offset: 2px; }
.dare-score { font-size: 1rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.dare-ci { font-variant-numeric: tabular-nums; white-space: nowrap; }
.dare-small { font-size: .78rem; opacity: .82; }
.dare-tie { display: inline-block; min-width: 1.5em; padding: 0 .35em; border: 1px solid currentColor;
  border-radius: .8em; font-size: .75rem; text-align: center; font-weight: 600; }
.dare-tie.first { background: #0072B2; border-color: #0072B2; color: #fff; }
.dare-warn { border-left: 3px solid #D55E00; padding-left: .4rem; }
.dare details summary { cursor: pointer; font-size: .78rem; }
.dare ul { margin: .2rem 0 .2rem 1rem; padding: 0; font-size: .78rem; }
.dare-text { font-family: ui-monospace, monospace; font-size: .875rem; white-space: pre-wrap; overflow-wrap: anywhere;
  line-height: 1.6; border: 1px solid rgba(128,128,128,.35); border-radius: .5rem; padding: .6rem .8rem; }
.dare-text ins { background: rgba(0,114,178,.28); text-decoration: none; }
.dare-text del { background: rgba(230,159,0,.32); text-decoration: line-through; }
.dare-text .masked { opacity: .45; }
.dare-text .fresh { outline: 2px solid #D55E00; outline-offset: -1px; border-radius: 2px; }
@media (max-width: 640px) {
  table.dare.fold, table.dare.fold tbody, table.dare.fold tr, table.dare.fold td { display: block; width: 100%; }
  table.dare.fold thead { display: none; }
  table.dare.fold tr { border: 1px solid rgba(128,128,128,.45); border-radius: .5rem; margin: 0 0 .8rem; }
  table.dare.fold td { border-bottom: 1px solid rgba(128,128,128,.2); box-sizing: border-box; text-align: left; }
  table.dare.fold td:last-child { border-bottom: 0; }
  table.dare.fold td[data-label]::before { content: attr(data-label); display: block; font-size: .75rem;
    font-weight: 600; opacity: .75; }
  table.dare.fold:not(.tall) td[data-label] { display: flex; gap: .6rem; padding: .3rem .6rem; }
  table.dare.fold:not(.tall) td[data-label]::before { flex: 0 0 35%; }
  table.dare.fold td.empty, table.dare.fold td[data-label=""]:empty { display: none; }
  table.dare.fold td.num { text-align: left; white-space: normal; }
}
"""


def table(
    columns: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    numbers: Iterable[int] = (),
    label: str,
    fold: bool = True,
) -> Markup:
    """Return a table that folds into cards on a phone (``fold``); ``numbers`` are the columns set to the right.

    ``label`` names the table for screen readers.
    """
    names, right = list(columns), set(numbers)
    body = [
        el(
            "tr",
            *[
                el("td", cell, class_="num" if place in right else None, data_label=names[place])
                for place, cell in enumerate(row)
            ],
        )
        for row in rows
    ]
    titles = [el("th", name, scope="col", class_="num" if i in right else None) for i, name in enumerate(names)]
    head = el("tr", *titles)
    kind = "dare fold" if fold else "dare"
    return wrapped(el("table", el("thead", head) if any(names) else None, el("tbody", *body), class_=kind), label)


def wrapped(content: Markup, label: str) -> Markup:
    """Return ``content`` in a region that scrolls by keyboard where it is wider than the page."""
    return el("div", content, class_="dare-wrap dare", tabindex="0", role="region", aria_label=label)
