"""Stores that may not be written, that somebody holds, or that are not ours: told as such, read where they can be."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import text

from dare_eval.errors import DataError, SetupError
from dare_eval.records import database, read_only
from dare_eval.records.best import PairwiseTests, significant_best
from dare_eval.records.database import migrate
from dare_eval.records.index import index_folders
from dare_eval.records.listing import run_lines
from dare_eval.records.store import Store
from leaderboard.data.board import load_board
from leaderboard.data.source import refresh

A = [n % 3 == 0 for n in range(12)]
B = [n % 4 == 0 for n in range(12)]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store/dare.db"


@pytest.fixture
def readable(url, make_run, tmp_path, monkeypatch):
    """Return the address of a store with two runs that this user may read and not write (root may write any)."""
    for name, verdicts in (("a", A), ("b", B)):
        make_run(name, verdicts, model=name)
    index_folders(Store(url), tmp_path / "runs")
    monkeypatch.setattr(read_only.os, "access", lambda path, mode: False)
    return url


def test_a_store_that_can_only_be_read_is_read_by_everything(readable, make_run, tmp_path, monkeypatch):
    before = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    store = Store(readable)
    assert store.read_only and len(store.results()) == 2 and len(run_lines(store)) == 2
    assert significant_best(store.results(), PairwiseTests(store)) == set()
    monkeypatch.setenv("DARE_RUNS", str(tmp_path / "runs"))
    problems = refresh(readable)
    assert [one.serious for one in problems] == [False] and "can only be read" in problems[0].what
    assert len(load_board(readable, store.version(), problems).cells) == 2
    assert index_folders(store, tmp_path / "runs").read == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()} == before


def test_writing_to_it_is_refused_and_says_what_to_do(readable, make_run):
    store = Store(readable)
    with pytest.raises(SetupError, match="can only be read here") as told:
        store.register_evaluation(make_run("c", A))
    assert "DARE_DB" in str(told.value.remedy) and len(store.results()) == 2


def test_a_store_that_is_being_written_is_read_with_what_is_whole(readable, monkeypatch):
    monkeypatch.setattr(read_only.os, "access", lambda path, mode: True)
    with Store(readable).engine.connect() as writer:
        writer.execute(text("UPDATE evaluations SET run_id = 'renamed'"))
        writer.commit()
        monkeypatch.setattr(read_only.os, "access", lambda path, mode: False)
        assert {one.run_id for one in Store(readable).evaluations()} == {"renamed"}


def test_an_older_store_that_cannot_be_brought_up_to_date_is_refused(url, tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()
    migrate(database._create(url), "0001")
    monkeypatch.setattr(read_only.os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match="of an older version and can only be read"):
        Store(url)


def test_a_store_that_another_process_holds_is_told_after_the_timeout(url, make_run, tmp_path, monkeypatch):
    store = Store(url)
    store.register_evaluation(make_run("a", A))
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    holder = sqlite3.connect(tmp_path / "store" / "dare.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert len(store.results()) == 1, "a reader waits for nobody"
        with pytest.raises(SetupError, match="database is locked") as told:
            store.register_evaluation(make_run("b", B))
        assert "index runs/" in str(told.value.remedy)
        found = index_folders(store, tmp_path / "runs")
        assert len(found.problems) == 1 and "locked" in found.problems[0]
    finally:
        holder.close()
    assert index_folders(store, tmp_path / "runs").problems == [] and len(store.results()) == 2


def test_a_database_of_another_program_is_refused(url):
    with Store(url).engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '000-of-others'"))
    with pytest.raises(DataError, match="schema is not known"):
        Store(url)
