"""The board: ``streamlit run leaderboard/app.py``, or ``dare-eval board``.

Opens the store that ``DARE_DB`` names (default ``runs/.dare.db``), reads new run folders once when the server starts,
and shows one page at a time. Each page is a function in ``leaderboard/views``; numbers come from ``leaderboard/data``.
"""

from __future__ import annotations

import streamlit as st

from dare_eval.errors import DareError
from leaderboard import state
from leaderboard.markup import STYLE
from leaderboard.views import (
    algorithms,
    empty,
    items,
    overview,
    pareto,
    problems,
    reproducibility,
    run,
    stability,
    trajectory,
)

PAGES = (  # title, function, address; the first one opens, the last is reached by links only
    ("Results", overview.page, ""),
    ("Quality and cost", pareto.page, "pareto"),
    ("Algorithms", algorithms.page, "algorithms"),
    ("Items", items.page, "items"),
    ("Denoising", trajectory.page, "denoising"),
    ("Answer stability", stability.page, "stability"),
    ("Reproducibility", reproducibility.page, "reproducibility"),
    ("Problems", problems.page, "problems"),
    ("Run", run.page, "run"),
)


def main() -> None:
    """Draw the page that the address names, or the page that says how to begin."""
    st.set_page_config(page_title="DARE board", layout="wide")
    st.html(f"<style>{STYLE}</style>")
    try:
        found = state.current_board()
    except DareError as error:
        state.show_error(error)
        return
    if found is None or found.empty:
        empty.page(found.problems if found else ())
        return
    st.session_state["board"] = found
    pages = [
        st.Page(
            function,
            title=title,
            url_path=address or None,
            default=not address,
            visibility="hidden" if address == "run" else "visible",
        )
        for title, function, address in PAGES
    ]
    st.navigation(pages, position="top").run()


main()
