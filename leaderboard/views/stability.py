"""Answer stability: when the extracted answer last changed, what was spent after that, what was right and then lost."""

from __future__ import annotations

from shlex import quote

import streamlit as st

from leaderboard.data.stability import Measured, measure
from leaderboard.markup import table
from leaderboard.state import board, choose, readable, result_label, show, tell, verbatim


def page() -> None:
    """Draw the page."""
    st.title("Answer stability")
    cells = {cell.id: cell for cell in readable(board().cells) if cell.nfe}
    if not cells:
        st.info("No result with step maps: decoding by our own models records them.")
        return
    labels = [f"{cell.dataset} · {result_label(cell)}" for cell in cells.values()]
    cell = cells[choose("Result", list(cells), labels, key="stability result", parameter="result")]
    found = measure(cell.folder, cell.stamp, cell.model, cell.dataset)
    if found.trouble:
        st.info("No stability figures for this result.")
        verbatim(found.trouble)
    _figures(found)
    st.caption("The same on the command line:")
    st.code(f"dare-eval stability {quote(cell.folder)}", language="bash", wrap_lines=True)


def _figures(found: Measured) -> None:
    if found.rows:
        show(table(["Figure", "Value", "95 %", "n"], found.rows, numbers=(1, 2, 3), label="Answer stability"))
    for note in found.notes:
        tell(note)
