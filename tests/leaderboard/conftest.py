from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dare_eval.records.index import index_folders
from dare_eval.records.store import Store
from leaderboard.data.board import Board, load_board
from leaderboard.data.source import refresh
from tests.leaderboard import stores

KINDS = ("empty", "one", "many", "corrupt")
TRACKED = ("DARE_DB", "DARE_RUNS", "DARE_CACHE")


def fill(kind: str, root: Path) -> str:
    """Write the runs of ``kind`` below ``root/runs``, index them, and return the store's URL."""
    url = f"sqlite:///{root}/dare.db"
    (root / "runs").mkdir(parents=True)
    store = Store(url)
    if kind == "corrupt":
        stores.corrupt(root / "runs", store)
    elif kind != "empty":
        getattr(stores, kind)(root / "runs")
    index_folders(store, root / "runs")
    return url


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a filled store by its kind, made once and only read."""
    made: dict[str, Path] = {}

    def give(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DARE_CACHE", str(made[kind] / "cache"))
                fill(kind, made[kind])
        return made[kind]

    return give


@pytest.fixture
def place(filled: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Point the environment at the store of a kind and return its folder."""

    def give(kind: str) -> Path:
        folder = filled(kind)
        for name, value in zip(
            TRACKED, (f"sqlite:///{folder}/dare.db", folder / "runs", folder / "cache"), strict=True
        ):
            monkeypatch.setenv(name, str(value))
        return folder

    yield give


@pytest.fixture
def board(place: Callable[[str], Path]) -> Callable[[str], Board]:
    """Return the board of a kind, its paired tests made."""

    def give(kind: str) -> Board:
        url = f"sqlite:///{place(kind)}/dare.db"
        problems: Any = refresh(url)
        return load_board(url, Store(url).version(), problems)

    return give
