"""Shown while the store knows no run: what to type."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dare_eval.records.database import database_url
from leaderboard.data.problems import Problem
from leaderboard.data.source import runs_folder
from leaderboard.markup import table
from leaderboard.state import refresh_button, show, verbatim

STEPS = (
    ("Evaluate the shipped models, train one further and compare, in a few minutes on a CPU:", "bash scripts/demo.sh"),
    ("Evaluate one shipped model only:", "dare-eval run configs/eval/tiny_sudoku.py"),
    ("Add folders of runs that exist already, also of plain OpenCompass:", "dare-eval index FOLDER"),
)


def page(problems: Sequence[Problem]) -> None:
    """Draw the page."""
    st.title("No runs yet")
    st.write("This board shows evaluations that the store knows. Type one of these in the project's folder:")
    for why, command in STEPS:
        st.write(why)
        st.code(command, language="bash")
    runs = runs_folder()
    st.caption("Store, and the folder whose runs are read when the board opens:")
    verbatim(f"{database_url().rpartition('@')[2]}\n{runs if runs is not None else 'none: DARE_RUNS names one'}")
    if problems:
        st.subheader("Folders that could not be read")
        show(
            table(["Folder", "What is wrong"], [(one.where, one.what) for one in problems], label="Unreadable folders")
        )
    refresh_button()
