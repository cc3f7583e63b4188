"""Opens the store's database: SQLite file by default, any SQLAlchemy URL by ``DARE_DB``; brings its schema up to date.

SQLite runs in WAL mode with a busy timeout, and a writer takes its lock when its transaction begins, so any number
of processes may write at once and none sees "database is locked". A database of a newer schema is refused; one that
this user may only read can be read (``records.read_only``).
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.records.atomic import locked
from dare_eval.records.read_only import OPTION, connect, only_readable, refusal

HEAD = "0003"
"""Newest schema version; a test compares it with the migration files."""
DEFAULT_URL = "sqlite:///runs/.dare.db"
"""Its name sorts before those of run folders: ``opencompass -w runs -r`` takes the last name for the newest run."""
BUSY_TIMEOUT_MS = 60_000
_MIGRATIONS = Path(__file__).parent / "migrations"
_POSTGRES_LOCK = 0x44415245  # any constant; all processes must name the same one


def database_url(url: str | None = None) -> str:
    """Return ``url``, else ``DARE_DB``, else the SQLite file below ``runs/``; the path of a .db file means SQLite."""
    found = url or os.environ.get("DARE_DB") or DEFAULT_URL
    return f"sqlite:///{found}" if found.endswith(".db") and "://" not in found else found


def exists(url: str | None = None) -> bool:
    """Return whether there is a store to read; a look-up must not leave an empty file behind.

    Raises ``DataError`` for a ``url`` given by hand whose folder does not exist: it is mistyped, not empty.
    """
    try:
        found = make_url(database_url(url))
    except ArgumentError:  # open_engine says what is wrong with it
        return True
    if found.get_backend_name() != "sqlite":
        return True
    path = Path(found.database or "")
    if url is not None and found.database != ":memory:" and not path.parent.is_dir():
        raise DataError(
            "the folder of this store does not exist",
            seen=path,
            allowed="sqlite:///path/dare.db (four slashes for a path from the root)",
            remedy=f"repair --db, or make the store with: dare-eval index runs/ --db {url}",
        )
    return path.is_file()


def open_engine(url: str | None = None) -> Engine:
    """Return an engine whose schema is current; the SQLite file and its folder are made when missing.

    Raises ``UsageError`` for a URL that is none, ``SetupError`` for a missing driver or server, ``DataError`` for a
    file that is no database or of a newer schema.
    """
    address = database_url(url)
    engine = _create(address)
    try:
        if engine.dialect.name == "sqlite":
            _prepare_sqlite(engine)
        else:
            migrate(engine)
    except SQLAlchemyError as error:
        kind = SetupError if engine.dialect.name != "sqlite" else DataError
        raise kind(
            f"the store cannot be opened: {getattr(error, 'orig', None) or error}",
            seen=engine.url.render_as_string(hide_password=True),
            remedy="check DARE_DB; an SQLite store can be removed and made again with: dare-eval index runs/",
        ) from error
    event.listen(engine, "handle_error", _say_why)
    return engine


def migrate(engine: Engine, target: str = HEAD) -> None:
    """Bring the schema to version ``target``; does nothing when it is there already."""
    if schema_version(engine) == target:
        return
    with engine.connect() as connection, connection.begin():
        if engine.dialect.name == "postgresql":  # two processes may open a new store at once
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})"))
        _refuse_newer(_version(connection), engine)
        _upgrade(connection, target)


def schema_version(engine: Engine) -> str | None:
    """Return the schema version of the database; None for an empty one."""
    with reading(engine) as connection:
        found = _version(connection)
    _refuse_newer(found, engine)
    return found


def _create(address: str) -> Engine:
    try:
        url = make_url(address)
        in_memory = url.database in (None, "", ":memory:")
        kept = only_readable(url)
        opened = {} if kept is None else {"creator": functools.partial(connect, kept)}
        # no pool: a connection must not cross a fork, and opening one is cheap beside reading a run
        engine = create_engine(address, poolclass=None if in_memory else NullPool, **opened)
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(
            f"DARE_DB is not a database URL: {error}",
            seen=address,
            allowed="sqlite:///path/dare.db or postgresql+psycopg://user@host/name",
        ) from None
    except ModuleNotFoundError as error:
        raise SetupError(
            f"the database driver '{error.name}' is not installed",
            seen=make_url(address).render_as_string(hide_password=True),
            remedy="pip install 'dare[postgres]'",
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _on_sqlite_connect)
        event.listen(engine, "begin", _on_sqlite_begin)
    if kept is not None:
        engine.update_execution_options(**{OPTION: True})
    return engine


def _prepare_sqlite(engine: Engine) -> None:
    name = engine.url.database
    if not name or name == ":memory:":
        migrate(engine)
        return
    path = Path(name)
    if engine.get_execution_options().get(OPTION):
        _refuse_older(engine)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size and schema_version(engine) == HEAD:
            return
        with locked(path):  # changing to WAL needs the file alone, and does not wait by itself
            _use_wal(engine)
            migrate(engine)
    except OSError as error:
        raise SetupError(
            f"the store's folder is not writable: {error.strerror}", seen=path, remedy="set DARE_DB to a writable place"
        ) from error


def _use_wal(engine: Engine) -> None:
    raw = engine.raw_connection()  # outside any transaction, where SQLite refuses the change
    try:
        raw.cursor().execute("PRAGMA journal_mode=WAL")
    finally:
        raw.close()


def _on_sqlite_connect(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the begin event decides, not the driver
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA synchronous=NORMAL")  # in WAL mode safe against a killed process
    connection.execute("PRAGMA foreign_keys=ON")


def _on_sqlite_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    reads = options.get("dare_reads", False)
    if options.get(OPTION) and not reads:
        raise refusal(connection.engine.url.render_as_string(hide_password=True))
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that only reads and therefore waits for no writer."""
    with engine.connect().execution_options(dare_reads=True) as connection:
        yield connection


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _refuse_newer(found: str | None, engine: Engine) -> None:
    if found is not None and found > HEAD:
        raise DataError(
            "the store was written by a newer version of this program",
            seen=f"schema {found} in {engine.url.render_as_string(hide_password=True)}",
            allowed=f"schema {HEAD} or older",
            remedy="update dare, or point DARE_DB elsewhere and run: dare-eval index runs/",
        )


def _refuse_older(engine: Engine) -> None:
    found = schema_version(engine)
    if found != HEAD:
        raise DataError(
            "the store is of an older version and can only be read here, so it cannot be brought up to date",
            seen=f"schema {found} in {engine.url.render_as_string(hide_password=True)}",
            remedy="open it once where it can be written, or set DARE_DB and run: dare-eval index runs/",
        )


def _say_why(context: ExceptionContext) -> None:
    """Raise ``SetupError`` for what the surroundings did: a lock kept too long, a full disk, a server gone."""
    if isinstance(context.sqlalchemy_exception, OperationalError):
        where = "" if context.engine is None else context.engine.url.render_as_string(hide_password=True)
        remedy = "wait for the process that holds it, or check disk and server; then: dare-eval index runs/"
        said = f"the store cannot be used: {context.original_exception}"
        raise SetupError(said, seen=where, remedy=remedy) from context.original_exception


def _upgrade(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, target)
    except CommandError as error:
        where = connection.engine.url.render_as_string(hide_password=True)
        remedy = "point DARE_DB at a store of this program, or at a new file, and run: dare-eval index runs/"
        raise DataError(f"the store's schema is not known: {error}", seen=where, remedy=remedy) from error
