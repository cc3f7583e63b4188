"""What all pages share while Streamlit runs: the board in its present state, and small widgets over data.

Everything shown through here is text: names and responses go through :mod:`leaderboard.markup` or widgets that do not
read Markdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from dare_eval.errors import DareError
from dare_eval.records.database import database_url, exists
from dare_eval.records.safe import one_line, visible
from dare_eval.records.store import Store
from leaderboard.data.board import Board, Cell, load_board
from leaderboard.data.pareto import prepare_areas
from leaderboard.data.problems import Problem
from leaderboard.data.source import refresh, runs_folder
from leaderboard.markup import Markup


@st.cache_resource(show_spinner="Reading the run folders and comparing new results", max_entries=4)
def _refreshed(url: str, runs: str, stored: tuple[int, ...]) -> tuple[Problem, ...]:
    """Bring the store up to date: when the server starts, when runs were stored since, when a reader asks for it."""
    problems = refresh(url)
    prepare_areas(load_board(url, _store(url).version(), problems))
    return problems


@st.cache_resource(show_spinner=False)
def _store(url: str) -> Store:
    return Store(url)


def current_board() -> Board | None:
    """Return the board, or None when there is neither a store nor a folder of runs; raises ``DareError``."""
    url, runs = database_url(), runs_folder()
    if not exists() and not (runs is not None and runs.is_dir()):
        return None
    problems = _refreshed(url, str(runs), _store(url).version(tests=False))
    return load_board(url, _store(url).version(), problems)


def refresh_button() -> None:
    """Draw the button that reads the run folders again."""
    if st.button("Read the run folders again", icon=":material/refresh:"):
        _refreshed.clear()
        st.rerun()


def board() -> Board:
    """Return the board of this run of the script, which ``app.py`` put there."""
    found = st.session_state["board"]
    assert isinstance(found, Board)
    return found


def show(content: Markup) -> None:
    """Show markup made by :mod:`leaderboard.markup`; every text in it is escaped."""
    st.html(content)


def show_error(error: DareError) -> None:
    """Show what is wrong and what helps, as text."""
    st.error("The store cannot be read.")
    verbatim("\n".join(line for line in (error.what, str(error.seen or ""), error.remedy or "") if line))


def tell(words: object) -> None:
    """Show a short text that may hold names; characters that would act rather than show are written out."""
    st.text(visible(words))


def verbatim(words: object) -> None:
    """Show a text of any length line by line, as it is; characters that would act are written out."""
    st.code(visible(words), language=None, wrap_lines=True)


def distinct(names: Iterable[object]) -> list[str]:
    """Return each name on one line, numbered where it stands for several: a list of choices needs its texts unique."""
    shown = [visible(name).replace("\n", " ") for name in names]
    many, seen = Counter(shown), Counter[str]()
    found = []
    for name in shown:
        seen[name] += 1
        found.append(f"{name} (no. {seen[name]} of {many[name]})" if many[name] > 1 else name)
    return found


def choose(label: str, options: Sequence[Any], names: Sequence[str], *, key: str, parameter: str | None = None) -> Any:
    """Return the chosen one of ``options``; the address keeps the choice under ``parameter``, so that it can be sent.

    Options must be texts or numbers. The first option is chosen when the address names none;
    an address that names something else is answered with a warning.
    """
    shown = dict(zip(options, distinct(names), strict=True))
    wanted = st.query_params.get(parameter) if parameter else None
    known = next((option for option in options if str(option) == wanted), None)
    if known is not None and st.session_state.get(f"{key} from address") != wanted:
        st.session_state[key] = known
        st.session_state[f"{key} from address"] = wanted
    if st.session_state.get(key) not in options:  # what was chosen is no longer offered
        st.session_state.pop(key, None)
    found = st.selectbox(label, options, format_func=lambda option: shown.get(option, str(option)), key=key)
    if parameter and wanted is not None and known is None:
        _warn_of_address(parameter, wanted, f"{label}: {shown.get(found, 'nothing to choose from')}")
    if parameter and found is not None:
        st.session_state[f"{parameter} written"] = str(found)
        st.query_params[parameter] = str(found)
        st.session_state[f"{key} from address"] = str(found)
    return found


def _warn_of_address(parameter: str, wanted: str, instead: str) -> None:
    """Say that what the address names is not offered, unless the board wrote it there for an earlier choice."""
    if st.session_state.get(f"{parameter} written") != wanted:
        st.warning("The address names something that is not here.")
        verbatim(f"{parameter}={one_line(wanted)}\nshown instead: {instead}")


def result_label(cell: Cell) -> str:
    """Return a result in one line for a list of choices."""
    score = "no score" if cell.value is None else f"{cell.value:.1f} %"
    return f"{cell.name} · {cell.run} · {score}"


def readable(cells: Sequence[Cell]) -> list[Cell]:
    """Return one cell per result that may have item records: the first metric of each model, data set and run."""
    found: dict[tuple[int, str, str], Cell] = {}
    for cell in sorted(cells, key=lambda one: (one.measures != "verdict", one.id)):
        found.setdefault((cell.evaluation, cell.model, cell.dataset), cell)
    return list(found.values())
