"""Opens the store for the board: which one, whether it is there, and bringing it up to the state of the run folders.

The folder of runs is ``DARE_RUNS``; without it ``runs`` while the default store is in use, and none for a store that
``DARE_DB`` names, whose runs may lie anywhere. Only evaluation runs are read again here; hashing new checkpoints is
left to ``dare-eval index``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dare_eval.errors import DareError
from dare_eval.records.column_tests import prepare_pairs
from dare_eval.records.database import DEFAULT_URL, database_url
from dare_eval.records.index import find_folders
from dare_eval.records.store import Store, folder_stamp
from leaderboard.data.problems import Problem

Notify = Callable[[str], None]


def runs_folder(url: str | None = None) -> Path | None:
    """Return the folder whose runs the board reads before it opens, or None."""
    if os.environ.get("DARE_RUNS"):
        return Path(os.environ["DARE_RUNS"])
    return Path("runs") if database_url(url) == DEFAULT_URL else None


def refresh(url: str | None = None, notify: Notify | None = None) -> tuple[Problem, ...]:
    """Read new and changed runs below :func:`runs_folder`, make missing paired tests; return unreadable folders.

    A store that can only be read is shown as it is.
    """
    say = notify or (lambda _: None)
    store = Store(url)
    if store.read_only:
        where = store.engine.url.render_as_string(hide_password=True)
        return (Problem("store", where, "the store can only be read here: nothing new is added or compared", False),)
    problems = _register(store, runs_folder(url), say)
    prepare_pairs(store, say)
    return tuple(problems)


def _register(store: Store, root: Path | None, say: Notify) -> list[Problem]:
    problems: list[Problem] = []
    if root is None or not root.is_dir():
        return problems
    for folder, kind in find_folders(root):
        if kind != "run":
            continue
        try:
            if not store.has_stamp(folder, folder_stamp(folder)):
                say(f"reading {folder}")
                store.register_evaluation(folder)
        except (DareError, OSError) as error:
            problems.append(Problem(folder.name, str(folder), str(error), True))
    return problems
