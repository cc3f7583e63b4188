"""Results: models by benchmarks, ties instead of ranks, with interval, cost and decode settings in every cell."""

from __future__ import annotations

import streamlit as st

from dare_eval.records.safe import visible
from leaderboard.data.board import Board, Cell, columns_of
from leaderboard.data.overview import Filters, options, overview, select
from leaderboard.matrix import matrix
from leaderboard.state import board, refresh_button, show

BY_NAME = "family and name"


def page() -> None:
    """Draw the page."""
    found = board()
    st.title("Results")
    serious = sum(problem.serious for problem in found.problems)
    if serious:
        st.warning(f"{serious} problems with runs: see the page Problems.", icon=":material/report:")
    filters, sort = _filters(found)
    number = st.session_state.get("overview page", 1)
    shown = overview(found, filters, int(number), sort)
    if not shown.total:
        st.info("No result passes the filter.")
        return
    show(matrix(shown, _address, lambda number: f"run?id={number}"))
    _pager(shown.pages, shown.total)
    with st.expander("How to read this"):
        st.markdown(
            "**Score** in percent with its 95 % interval; the number opens the items. **Badge**: results of one column "
            "with the same badge cannot be told apart by paired tests on the same items (Holm); 1 holds the best, "
            "order within a badge means nothing, and a letter marks results that answer another question (prompt, "
            "length, extractor). **NFE** is forwards of the denoiser per item. A coloured edge marks incomplete "
            "results. Column titles tell, on hover, which difference so many items can show."
        )
    refresh_button()


def _filters(found: Board) -> tuple[Filters, tuple[str, str] | None]:
    known = options(found)
    with st.expander("Filters", icon=":material/filter_alt:"):
        first, second = st.columns(2)
        families = first.multiselect("Family", known["families"], format_func=visible, key="families")
        benchmarks = second.multiselect("Benchmark", known["benchmarks"], format_func=visible, key="benchmarks")
        policies = first.multiselect("Decoding policy", known["policies"], format_func=visible, key="policies")
        text = second.text_input("Model or run contains", key="name filter")
        complete = first.checkbox("Complete results only", key="complete only")
        every = second.checkbox("All metrics", key="all metrics")
        family = second.checkbox("One row per family, its best", key="best of family")
        newest = first.checkbox("Newest of repeated measurements only", key="newest only")
        filters = Filters(
            families=tuple(families),
            benchmarks=tuple(benchmarks),
            policies=tuple(policies),
            text=text,
            complete_only=complete,
            all_metrics=every,
            newest_only=newest,
            best_of_family=family,
        )
        columns = columns_of(select(found.cells, filters), all_metrics=every)
        names = [BY_NAME, *[f"{dataset}, {metric}" for dataset, metric in columns]]
        order = second.selectbox("Order by", names, format_func=visible, key="order")
    return filters, columns[names.index(order) - 1] if order in names[1:] else None


def _pager(pages: int, total: int) -> None:
    if int(st.session_state.get("overview page", 1)) > pages:  # a filter left fewer pages
        st.session_state["overview page"] = pages
    if pages > 1:
        st.number_input(f"Page (of {pages}; {total} rows)", 1, pages, key="overview page")


def _address(cell: Cell) -> str:
    return f"items?result={cell.id}"
