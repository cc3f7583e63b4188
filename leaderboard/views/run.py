"""One run: what ran, with what, where, and what is wrong with it. Reached from the results."""

from __future__ import annotations

import json

import streamlit as st

from dare_eval.records.manifest import RunManifest
from dare_eval.records.tables import Evaluation
from leaderboard.markup import el, table
from leaderboard.matrix import cost_line, interval, settings_line
from leaderboard.state import board, choose, show


def page() -> None:
    """Draw the page."""
    st.title("Run")
    found = board()
    names = [run.run_id for run in found.runs.values()]
    run = found.runs[choose("Run", list(found.runs), names, key="run", parameter="id")]
    _facts(run)
    cells = [cell for cell in found.cells if cell.evaluation == run.id]
    st.subheader("Results")
    rows = [
        (
            el("a", f"{cell.name} on {cell.dataset}", href=f"items?result={cell.id}"),
            cell.metric,
            "no score" if cell.value is None else f"{cell.value:.2f}",
            interval(cell),
            cost_line(cell),
            settings_line(cell),
        )
        for cell in cells
    ]
    show(
        table(
            ["Result", "Metric", "Score, %", "95 %", "Cost", "Decode settings"], rows, numbers=(2, 3), label="Results"
        )
    )
    problems = [problem for problem in found.problems if problem.run == run.run_id]
    if problems:
        st.subheader("Problems and gaps")
        show(table(["Where", "What"], [(one.where, one.what) for one in problems], label="Problems"))
    if run.manifest:
        with st.expander("The whole manifest"):
            st.json(run.manifest, expanded=1)


def _facts(run: Evaluation) -> None:
    facts = [
        ("status", run.status),
        ("made by", "DARE" if run.origin == "dare" else "plain OpenCompass"),
        ("started", run.started or "not recorded"),
        ("finished", run.finished or "not recorded"),
        ("folder", run.folder),
    ]
    manifest = RunManifest.from_dict(run.manifest) if run.manifest else None
    if manifest is not None:
        facts += [(name, _short(manifest.environment.get(name))) for name in ("device", "dtype", "attn_backend", "git")]
        spent = {name: value for name, value in manifest.budget.to_dict().items() if value is not None}
        facts += [(f"spent: {name.replace('_', ' ')}", f"{value:,.6g}") for name, value in spent.items()]
        facts += [(f"weights of {one.name}", one.weight_hash or "not recorded") for one in manifest.models]
    show(table(["", ""], facts, label="Facts about the run", fold=False))


def _short(value: object) -> str:
    return (
        "not recorded" if value in (None, "") else value if isinstance(value, str) else json.dumps(value, default=str)
    )
