"""Quality and cost: scores against forwards and speed, a curve per model and decoding strategy."""

from __future__ import annotations

import streamlit as st

from leaderboard.areas import AREA_COLUMNS, area_rows
from leaderboard.data.board import Board, Cell, columns_of
from leaderboard.data.pareto import COSTS, Strategy, models_of, strategies, undominated
from leaderboard.markup import table
from leaderboard.matrix import cost_line, interval, settings_line
from leaderboard.plots import CONFIG, pareto_figure
from leaderboard.state import board, choose, distinct, show

SHOWN_MODELS = 6
SHOWN_SETTINGS, MOST_SETTINGS = 12, 200


def page() -> None:
    """Draw the page."""
    st.title("Quality and cost")
    found = board()
    columns = columns_of(found.cells, all_metrics=True)
    if not columns:
        st.info("No run here has results.")
        return
    names = [f"{dataset}, {metric}" for dataset, metric in columns]
    first, second = st.columns(2)
    with first:
        column = columns[choose("Benchmark", list(range(len(columns))), names, key="pareto column", parameter="bench")]
    with second:
        cost = st.segmented_control("Cost", list(COSTS), default="NFE", required=True, key="pareto cost") or "NFE"
    curves = strategies(found, column, _models(found, column))
    if not curves:
        st.info("No scored result on this benchmark.")
        return
    cells = [cell for curve in curves for cell in curve.cells]
    best = undominated(cells, COSTS[cost])
    figure = pareto_figure(curves, (cost, COSTS[cost]), best, _describe)
    st.plotly_chart(figure, config=CONFIG, key="pareto figure", alt=f"Score against {cost}, one curve per strategy")
    st.caption(
        "Bands and bars are 95 % intervals. Large marks: no other setting shown is better in both. "
        "Models that write left to right, or do not say how they write, stand beside the curves."
    )
    _areas(curves)
    _settings(curves, best)


def _models(found: Board, column: tuple[str, str]) -> list[str]:
    known = models_of(found, column)
    keys = sorted(known, key=lambda key: known[key])
    names = dict(zip(keys, distinct(known[key] for key in keys), strict=True))
    chosen = st.multiselect(
        "Models (none chosen: all)",
        keys,
        default=keys[:SHOWN_MODELS] if len(keys) > SHOWN_MODELS else [],
        format_func=lambda key: names.get(key, key),
        key=f"pareto models {column}",
    )
    return list(chosen)


def _areas(curves: list[Strategy]) -> None:
    st.subheader("AUP, accuracy under parallelism")
    rows = area_rows(curves)
    if not rows:
        st.caption("Needs a strategy with at least two settings: dare-eval sweep makes them.")
        return
    show(table(AREA_COLUMNS, rows, numbers=(1, 2, 3), label="AUP"))


def _settings(curves: list[Strategy], best: set[int]) -> None:
    rows = [
        (
            curve.name,
            settings_line(cell),
            f"{cell.value:.1f} [{interval(cell)}]",
            cost_line(cell),
            "undominated" if cell.id in best else "",
        )
        for curve in curves
        for cell in curve.cells
    ]
    with st.expander(f"All {len(rows)} settings", expanded=len(rows) <= SHOWN_SETTINGS):
        show(table(["Strategy", "Decode settings", "Score, %", "Cost", ""], rows[:MOST_SETTINGS], label="Settings"))
        if len(rows) > MOST_SETTINGS:
            st.caption(f"{len(rows) - MOST_SETTINGS} more: choose fewer models.")


def _describe(cell: Cell) -> str:
    return f"{cell.name}: {cell.value:.1f} [{interval(cell)}], {cost_line(cell)}, {settings_line(cell)}"
