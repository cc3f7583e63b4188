"""Items: what a model was asked, what it answered, what was extracted by which rule; two runs word by word."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import streamlit as st

from dare_eval.records.items import ItemRecord
from dare_eval.records.safe import one_line, visible
from leaderboard.data.board import Cell
from leaderboard.data.difference import differing, summary
from leaderboard.data.items import (
    CHANGES,
    PAGE_ITEMS,
    VERDICTS,
    Loaded,
    changes,
    find_items,
    load_items,
    verdict,
    word_changes,
)
from leaderboard.markup import Markup, el, joined, table
from leaderboard.state import board, choose, distinct, readable, result_label, show, tell, verbatim

NOTHING = 0


def page() -> None:
    """Draw the page."""
    st.title("Items")
    cells = {cell.id: cell for cell in readable(board().cells)}
    if not cells:
        st.info("No run here has item records.")
        return
    chosen = _choose_result(cells)
    others = [one for one in cells.values() if one.base == chosen.base and one.id != chosen.id]
    ids, labels = [NOTHING, *[one.id for one in others]], ["nothing", *[result_label(one) for one in others]]
    other = choose("Compare with", ids, labels, key=f"compare with {chosen.base}", parameter="other")
    loaded = _load(chosen)
    if other in cells and other != chosen.id:
        _difference(chosen, cells[other], loaded)
    else:
        _browse(loaded)


def _choose_result(cells: dict[int, Cell]) -> Cell:
    wanted = st.query_params.get("result", "")
    named = next((cell for cell in cells.values() if str(cell.id) == wanted), None)
    datasets = sorted({cell.dataset for cell in cells.values()})
    if named is not None and st.session_state.get("items from address") != wanted:
        st.session_state["items dataset"] = named.dataset
        st.session_state["items from address"] = wanted
    dataset = st.selectbox("Benchmark", datasets, format_func=visible, key="items dataset")
    there = [cell for cell in cells.values() if cell.dataset == dataset]
    labels = [result_label(cell) for cell in there]
    number = choose("Result", [cell.id for cell in there], labels, key=f"result {dataset}", parameter="result")
    st.session_state["items from address"] = str(number)
    return cells[number]


def _load(cell: Cell) -> Loaded:
    loaded = load_items(cell.folder, cell.stamp, cell.model, cell.dataset)
    if loaded.trouble:
        st.warning("The items cannot be read.")
        verbatim(loaded.trouble)
    if loaded.problems:
        with st.expander(f"{len(loaded.problems)} lines of the record file are no usable record"):
            for problem in loaded.problems[:50]:
                tell(f"line {problem.line}: {problem.kind}: {problem.message}")
                verbatim(problem.text[:2000])
    return loaded


def _browse(loaded: Loaded) -> None:
    first, second, third = st.columns([2, 2, 1])
    kind = first.selectbox("Show", VERDICTS, key="items show")
    text = second.text_input("Text in prompt, response or answer", key="items text")
    number = third.number_input("Page", 1, key="items page")
    found = find_items(loaded.records, show=kind, text=text, page=int(number))
    st.caption(f"{found.total} of {len(loaded.records)} items; page {found.page} of {found.pages}, {PAGE_ITEMS} each")
    if not found.records:
        return
    by_id = {record.item_id: record for record in found.records}
    record = by_id[_open(by_id, {key: _name(one) for key, one in by_id.items()}, "open item")]
    _facts(record)
    _text("Prompt", record.prompt)
    _text("Response", record.response)
    if record.detail or record.extra:
        with st.expander("Everything else that is recorded"):
            st.json({"detail": record.detail, "other fields": record.extra, "item_id": record.item_id})
    st.subheader("Items on this page")
    columns = ["Item", "Verdict", "Answer found", "Reference", "Rule"]
    show(table(columns, [_line(record) for record in found.records], label="Items"))


def _difference(a: Cell, b: Cell, left: Loaded) -> None:
    right = _load(b)
    tell(summary(board(), a, b))
    also = differing(a, b)
    if also:
        with st.expander(f"{len(also)} settings differ"):
            tell("\n".join(also))
    kind = st.selectbox("Show", CHANGES, key="changes show")
    found = changes(left.records, right.records, kind)
    tell(f"{len(found)} items; first: {a.name} of {a.run}; second: {b.name} of {b.run}")
    if not found:
        return
    by_id = {x.item_id: (x, y) for x, y in found}
    labels = {key: f"{_name(x)} → {verdict(y)}" for key, (x, y) in by_id.items()}
    x, y = by_id[_open(by_id, labels, "open change")]
    _text("Prompt", x.prompt)
    parts = word_changes(x.response, y.response)
    for side, (cell, record, tag) in zip(st.columns(2), ((a, x, "del"), (b, y, "ins")), strict=True):
        with side:
            tell(f"{cell.name}, {cell.run}")
            _facts(record)
            show(_marked(parts, tag))


def _open(items: Collection[str], labels: Mapping[str, str], key: str) -> str:
    """Return the id of the item that the reader opened: the first one until one of ``items`` is chosen."""
    if st.session_state.get(key) not in items:
        st.session_state.pop(key, None)
    shown = dict(zip(items, distinct(labels.get(one, one) for one in items), strict=True))
    return str(st.selectbox("Open item", list(items), format_func=lambda one: shown.get(one, one), key=key))


def _marked(parts: list[tuple[str, str, str]], tag: str) -> Markup:
    shown = []
    for how, left, right in parts:
        piece = left if tag == "del" else right
        shown.append(el(tag, piece) if how == "changed" and piece else joined([piece]))
    return el("div", *shown, class_="dare-text")


def _facts(record: ItemRecord) -> None:
    facts = [
        ("verdict", verdict(record)),
        ("answer found", "none" if record.extracted is None else record.extracted),
        ("reference", record.reference),
        ("rule", record.rule or "none"),
        ("credit", "-" if record.value is None else f"{record.value:.3g}"),
        ("forwards", "-" if record.nfe is None else record.nfe),
        ("tokens", "-" if record.generated_tokens is None else record.generated_tokens),
        ("ended by", record.stop or "-"),
    ]
    if record.error is not None:
        facts.append(("error", record.error))
    if record.upstream_correct is not None:
        facts.append(("stock evaluator", f"{record.upstream_correct}, found {record.upstream_extracted}"))
    rows = [(name, one_line(value, 2000)) for name, value in facts]
    show(table(["", ""], rows, label="Facts about the item", fold=False))


def _text(title: str, body: str) -> None:
    st.caption(title)
    verbatim(body or "(empty)")


def _line(record: ItemRecord) -> tuple[object, ...]:
    answer = "none" if record.extracted is None else one_line(record.extracted)
    return record.index, verdict(record), answer, one_line(record.reference), record.rule or "none"


def _name(record: ItemRecord) -> str:
    repeat = f", repeat {record.repeat}" if record.repeat else ""
    return f"{record.index}{repeat}: {verdict(record)}, {one_line(record.extracted, 40)}"
