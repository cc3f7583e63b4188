"""Denoising: which forward revealed which position, a right and a wrong answer side by side, with a scrub bar."""

from __future__ import annotations

import streamlit as st

from dare_eval.records.items import ItemRecord
from leaderboard.data.board import Cell
from leaderboard.data.items import load_items, verdict
from leaderboard.data.tokens import Piece, piece_of
from leaderboard.data.trajectory import Trajectory, contrast, pieces_at, states, thinned, trajectory
from leaderboard.markup import Markup, el
from leaderboard.plots import CONFIG, trajectory_figure
from leaderboard.state import board, choose, distinct, readable, result_label, show, tell
from leaderboard.theme import clear, colour


def page() -> None:
    """Draw the page."""
    st.title("Denoising")
    cells = {cell.id: cell for cell in readable(board().cells) if cell.nfe}
    if not cells:
        st.info("No result with step maps: decoding by our own models records them.")
        return
    labels = [f"{cell.dataset} · {result_label(cell)}" for cell in cells.values()]
    left = cells[choose("Result", list(cells), labels, key="denoising result", parameter="result")]
    there = [cell for cell in cells.values() if cell.base == left.base]
    there.sort(key=lambda cell: cell.id == left.id)  # another run first: one question, answered right and wrong
    names = [result_label(cell) for cell in there]
    right = cells[choose("Second result", [c.id for c in there], names, key=f"second of {left.id}", parameter="other")]
    first, second = _pair(left, right)
    if first is None and second is None:
        st.info("The items of this result have no step map that can be drawn.")
        return
    longest = max(found.forwards for found in (first, second) if found is not None)
    forward = st.slider("Forward", 0, max(longest - 1, 1), longest - 1, key=f"forward {left.id} {right.id}")
    sides = st.columns(2)
    for number, (side, cell, found) in enumerate(zip(sides, (left, right), (first, second), strict=True)):
        with side:
            if found is not None:
                piece = piece_of(board().runs[cell.evaluation].manifest, cell.model)
                _draw(found, min(forward, found.forwards - 1), piece, number)
    st.caption(
        "Across: position in the response; down: forward. Light: masked; blue: known before; orange: revealed by this "
        "forward; pink: replaced by it. In the text, colour goes from early (blue) to late (orange)."
    )


def _pair(left: Cell, right: Cell) -> tuple[Trajectory | None, Trajectory | None]:
    a = load_items(left.folder, left.stamp, left.model, left.dataset).records
    b = load_items(right.folder, right.stamp, right.model, right.dataset).records
    right_one, wrong_one = contrast(a, b)
    picked = []
    for title, records, preset, key in (
        ("First item", a, right_one or wrong_one, f"item of {left.id}"),
        ("Second item", b, wrong_one or right_one, f"second item of {right.id}"),
    ):
        traced = {record.item_id: record for record in records if record.step_map}
        ids = list(traced)
        start = ids.index(preset.item_id) if preset is not None and preset.item_id in traced else 0
        names = dict(zip(traced, distinct(map(_name, traced.values())), strict=True))
        chosen = st.selectbox(
            title, ids, index=start if ids else None, format_func=lambda one, n=names: n.get(one, one), key=key
        )
        picked.append(trajectory(traced[chosen]) if chosen in traced else None)
    return picked[0], picked[1]


def _name(record: ItemRecord) -> str:
    return f"{record.index}: {verdict(record)}"


def _draw(found: Trajectory, forward: int, piece: Piece | None, number: int) -> None:
    item = found.item
    tell(f"item {item.index}: {verdict(item)}, answer {item.extracted}, {found.forwards} forwards")
    picture, rows, columns = thinned(states(found))
    figure = trajectory_figure(picture, (rows, columns), forward)
    alt = f"State of {len(found.steps_G)} positions over {found.forwards} forwards"
    st.plotly_chart(figure, config=CONFIG, key=f"picture {number}", alt=alt)
    show(_text(found, forward, piece))


def _text(found: Trajectory, forward: int, piece: Piece | None) -> Markup:
    shown = []
    last = max(found.forwards - 1, 1)
    for text, step in pieces_at(found, forward, piece):
        if step < 0:
            shown.append(el("span", text, class_="masked"))
        else:
            late = step / last
            shade = clear(colour(0), 0.12 + 0.4 * (1 - late)) if late < 0.5 else clear(colour(5), 0.4 * late)
            shown.append(el("span", text, style=f"background:{shade}", class_="fresh" if step == forward else None))
    return el("div", *shown, class_="dare-text")
