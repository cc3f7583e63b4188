"""Algorithms: checkpoints of one base, seeds pooled, every pair tested, budgets and training curves side by side."""

from __future__ import annotations

import streamlit as st

from dare_eval.records.safe import visible
from leaderboard.data.algorithms import (
    BASE,
    AlgorithmTable,
    Pooled,
    bases,
    compare_algorithms,
    decodings,
    members,
)
from leaderboard.data.board import columns_of
from leaderboard.data.curves import X_AXES, names, points, read_curve
from leaderboard.duels import DUEL_COLUMNS, LEDGER_COLUMN, SCORE_COLUMNS, duel_rows, ledger_rows, score_rows
from leaderboard.markup import table
from leaderboard.matrix import spec_line
from leaderboard.plots import CONFIG, bars_figure, curves_figure
from leaderboard.state import board, choose, show, tell


def page() -> None:
    """Draw the page."""
    st.title("Algorithms")
    found = board()
    known = bases(found)
    if not known:
        st.info("No evaluated checkpoint here names what it was trained from.")
        st.code(
            "dare-train sft --config configs/train/sft_tiny_sudoku_more.yaml --then-eval\ndare-eval index runs/",
            language="bash",
        )
        return
    chosen = choose("Base", [base.key for base in known], [base.name for base in known], key="base", parameter="base")
    base = next(one for one in known if one.key == chosen)
    cells = members(found, base)
    columns = columns_of(cells, all_metrics=True)
    if not columns:
        st.info("None of its checkpoints has scored items.")
        return
    titles = [f"{dataset}, {metric}" for dataset, metric in columns]
    column = columns[choose("Benchmark", list(range(len(columns))), titles, key="algorithm column", parameter="bench")]
    digests = decodings(cells, column)
    specs = {cell.spec_digest or "": spec_line(cell.spec) for cell in cells}
    digest = choose("Decode settings", digests, [specs[one] for one in digests], key=f"decoding {base.key} {column}")
    compared = compare_algorithms(found, base, column, digest)
    _scores(compared)
    _duels(compared)
    _ledger(compared.rows)
    _curves(compared.rows)


def _scores(compared: AlgorithmTable) -> None:
    st.plotly_chart(
        bars_figure([(row.algorithm, row.value, row.low, row.high) for row in compared.rows], "score, %"),
        config=CONFIG,
        key="algorithm bars",
        alt="Score of each algorithm with its 95 % interval",
    )
    show(table(SCORE_COLUMNS, score_rows(compared.rows), numbers=(1, 2, 3), label="Algorithms"))
    for name in compared.left_out:
        st.caption("Left out, items cannot be read:")
        tell(name)


def _duels(compared: AlgorithmTable) -> None:
    st.subheader("Differences on the same items")
    if not compared.duels:
        st.caption("Nothing to compare: one algorithm only.")
        return
    show(table(DUEL_COLUMNS, duel_rows(compared.duels), numbers=(1, 2, 3, 4), label="Differences"))
    st.caption(
        "Seeds of one recipe are averaged item by item; the interval speaks about items, the seeds' own scores show "
        "how much training varies. p is adjusted over all pairs listed."
    )


def _ledger(rows: tuple[Pooled, ...]) -> None:
    st.subheader("What training spent, mean per seed")
    trained, lines = ledger_rows(rows)
    if not lines:
        st.caption("No training budget is recorded for these checkpoints.")
        return
    columns = ["Entry", *trained, LEDGER_COLUMN]
    show(table(columns, lines, numbers=range(1, len(trained) + 1), label="Budgets"))


def _curves(rows: tuple[Pooled, ...]) -> None:
    st.subheader("Training curves")
    found = []
    for row in rows:
        for line in row.lineages if row.algorithm != BASE else ():
            curve = read_curve(line.name if line.seed is None else f"{line.name}, seed {line.seed}", line.folder)
            found += [curve] if curve is not None else []
    known = names(found)
    if not known:
        st.caption("No metrics.jsonl beside these checkpoints.")
        return
    first, second = st.columns(2)
    y = first.selectbox("Number", known, format_func=visible, key="curve y")
    axes = [axis for axis in X_AXES if any(axis in row for run in found for row in run.rows[:1])]
    x = second.selectbox("Against", axes or ["step"], key="curve x")
    series = [(run.name, points(run, x, y)) for run in found]
    st.plotly_chart(curves_figure(series, x, y), config=CONFIG, key="training curves", alt="Training curves")
    damaged = sum(run.damaged for run in found)
    if damaged:
        st.caption(f"{damaged} lines of the logs could not be read.")
