"""Problems: everything that is wrong with runs or not known about them; nothing is dropped for it."""

from __future__ import annotations

import streamlit as st

from leaderboard.markup import table
from leaderboard.state import board, refresh_button, show

PAGE = 100


def page() -> None:
    """Draw the page."""
    st.title("Problems")
    found = board().problems
    serious = [problem for problem in found if problem.serious]
    unknown = [problem for problem in found if not problem.serious]
    if not found:
        st.success("Every run is whole, and everything about it is recorded.")
    for title, why, some in (
        ("Damaged or incomplete", "Scores of these runs are shown with what could be read.", serious),
        ("Not recorded", "These results are shown; what is missing cannot be compared.", unknown),
    ):
        if some:
            st.subheader(f"{title} ({len(some)})")
            st.caption(why)
            number = 1
            if len(some) > PAGE:
                number = int(st.number_input("Page", 1, -(-len(some) // PAGE), key=f"page of {title}"))
            rows = [(one.run, one.where, one.what) for one in some[(number - 1) * PAGE : number * PAGE]]
            show(table(["Run", "Where", "What"], rows, label=title))
    refresh_button()
