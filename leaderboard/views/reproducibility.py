"""Reproducibility: does a run give the numbers of another one, what changed, and what saved reports say."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import streamlit as st

from dare_eval.records.tables import Evaluation
from dare_eval.report.published import differences, published_tables
from leaderboard.data.reproduction import Judged, Saved, judge, saved_reports
from leaderboard.data.source import runs_folder
from leaderboard.markup import table
from leaderboard.published import PUBLISHED_COLUMNS, published_row
from leaderboard.state import board, choose, show, tell, verbatim

MARKS = {"match": "✓ match", "within interval": "≈ within interval"}


def page() -> None:
    """Draw the page."""
    st.title("Reproducibility")
    runs = board().runs
    ordered = sorted(
        runs.values(), key=lambda run: (Path(run.folder).is_dir(), run.started or "", run.id), reverse=True
    )
    names = {run.id: _label(run) for run in ordered}
    st.write("Judge one run against the numbers of another: the same score, inside the interval, or off.")
    first, second = st.columns(2)
    with first:
        found = runs[choose("Run", list(names), list(names.values()), key="judged run", parameter="run")]
    others = [run for run in ordered if run.id != found.id]
    if others:
        with second:
            ids = [run.id for run in sorted(others, key=lambda run: -_alike(run, found))]
            number = choose("Recorded numbers", ids, [names[one] for one in ids], key=f"recorded for {found.id}")
        _judged(judge(found.folder, found.stamp, runs[number].folder, runs[number].stamp))
        st.caption("The same as a file, for CI and with an exit code:")
        command = f"dare-eval report {quote(found.folder)} --against {quote(runs[number].folder)} --out report"
        st.code(command, language="bash", wrap_lines=True)
    else:
        st.info("There is one run only: nothing to judge it against.")
    _saved(saved_reports(runs_folder()))
    _published()


def _judged(found: Judged) -> None:
    if found.trouble:
        st.warning("These runs cannot be judged.")
        verbatim(found.trouble)
        return
    st.subheader(f"Verdict: {found.verdict}")
    rows = []
    for one in found.judgements:
        now = "-" if one.found is None or one.found.row.value is None else f"{one.found.row.value:.2f}"
        then = "-" if one.recorded is None else f"{one.recorded.value:.2f}"
        verdict = MARKS.get(one.verdict, f"✗ {one.verdict}" if not one.good else one.verdict)
        rows.append((f"{one.model} on {one.dataset}", one.metric, now, then, verdict, one.reason))
    columns = ["Result", "Metric", "Now, %", "Recorded, %", "Verdict", "Why"]
    show(table(columns, rows, numbers=(2, 3), label="Judged numbers"))
    if found.environment:
        st.subheader("Environment entries that changed")
        lines = [(change.name, change.recorded, change.now) for change in found.environment]
        show(table(["Entry", "Recorded", "Now"], lines, label="Changed environment"))


def _saved(found: list[Saved]) -> None:
    st.subheader("Saved reports")
    if not found:
        st.caption("None below the folder of runs; this writes one there:")
        st.code("dare-eval report RUN --against RECORDED --out runs/report", language="bash")
        return
    for saved in found:
        bad = sum(case.verdict in ("off", "missing") for case in saved.cases)
        said = "cannot be read" if saved.trouble else f"{bad} of {len(saved.cases)} off" if bad else "reproduced"
        with st.expander(f"{said}: {len(saved.cases)} numbers"):
            verbatim(saved.path)
            if saved.trouble:
                tell(saved.trouble)
            rows = [(case.run, case.result, case.metric, case.verdict, case.reason) for case in saved.cases]
            show(table(["Run", "Result", "Metric", "Verdict", "Why"], rows, label="Saved report"))


def _published() -> None:
    st.subheader("Published tables")
    known = published_tables()
    if not known:
        return
    name = choose("Table", list(known), [one.title for one in known.values()], key="published", parameter="table")
    tell(known[name].source)
    rows = [published_row(one, known[name].decimals) for one in differences(known[name])]
    show(table(PUBLISHED_COLUMNS, rows, numbers=(2, 3, 4, 5), label="Published differences"))
    st.caption(
        "Unpaired tests, since no item records were published; n is the fewest items the source may have used; "
        "p is adjusted over the whole table."
    )


def _label(run: Evaluation) -> str:
    return f"{run.run_id} ({run.status})"


def _alike(run: Evaluation, other: Evaluation) -> int:
    """Return how many results of two runs have the same weights and data set."""
    pairs = [{(c.weight_hash, c.dataset) for c in board().cells if c.evaluation == one.id} for one in (run, other)]
    return len(pairs[0] & pairs[1])
