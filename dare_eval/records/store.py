"""The store: which checkpoints and evaluations exist, and every result with its settings.

    store = Store()                       # DARE_DB, default sqlite:///runs/.dare.db
    store.register_evaluation(folder)     # after a run; the same folder twice is one row, changed results a new one

It is an index over folders: ``dare-eval index runs/`` rebuilds it, nothing exists only here. Rows are never
changed or removed. Safe for many writing processes (``records.database``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from dare_eval.errors import DareError, DataError
from dare_eval.records.database import open_engine, reading
from dare_eval.records.manifest import RunManifest, now, read_manifest
from dare_eval.records.noise import Floor, add_floors, read_noise
from dare_eval.records.provenance import weight_hash
from dare_eval.records.read_only import OPTION
from dare_eval.records.run_rows import RunRow, run_rows
from dare_eval.records.runs import RECORDS, Run, load_run
from dare_eval.records.safe import storable
from dare_eval.records.significance import PairedTest
from dare_eval.records.tables import Checkpoint, Evaluation, NoiseFloor, PairTest, Result

_READ = (
    "manifest.json",
    "report.json",
    "failures/*.json",
    f"{RECORDS}/**/*.jsonl",
    "predictions/**/*.json",
    "results/**/*.json",
    "summary/*.csv",
    "configs/*.py",
    "noise.json",
)
"""Files that a run's rows are made from."""
_TEST_FIELDS = ("delta", "low", "high", "p", "n", "wins", "losses", "method")  # in the order of PairedTest
_TABLES = (Checkpoint, Evaluation, Result, PairTest, NoiseFloor)


class Store:
    """One open store; cheap to make, holds no connection between calls."""

    def __init__(self, url: str | None = None) -> None:
        self.engine = open_engine(url)

    @property
    def read_only(self) -> bool:
        """Whether the store can only be read here; writing raises ``SetupError``."""
        return bool(self.engine.get_execution_options().get(OPTION))

    def register_evaluation(self, folder: Path, *, strict: bool = False) -> int:
        """Add the run in ``folder`` with all its rows and return its id; a known state of a folder is added once.

        ``strict`` refuses (``DataError``) a run of ours that lacks its manifest or a decode spec; an index run is
        not strict and keeps such rows with labels.
        """
        stamp = folder_stamp(folder)  # before reading: a file that changes meanwhile is read again next time
        run = load_run(folder)
        rows = run_rows(run)
        if strict:
            _refuse_unspecified(run, rows)
        evaluation = _evaluation(run, rows, stamp)
        floors: list[Floor] = []
        try:
            floors = read_noise(folder)
        except DataError as error:  # the scores are whole; the run's label says what is not
            evaluation.labels = [*evaluation.labels, error.what]
        added = self._add_once(evaluation, [_result(found) for found in rows])
        add_floors(self.engine, added, floors)
        return added

    def register_checkpoint(self, folder: Path) -> int:
        """Add the checkpoint in ``folder`` (model files; its manifest there or one level up) and return its id."""
        checkpoint = _checkpoint(folder.resolve())
        same = select(Checkpoint.id).where(
            Checkpoint.folder == checkpoint.folder, Checkpoint.weight_hash == checkpoint.weight_hash
        )
        try:
            with Session(self.engine) as session, session.begin():
                known = session.scalar(same)
                if known is not None:
                    return known
                session.add(checkpoint)
                session.flush()
                return checkpoint.id
        except IntegrityError:  # another process added it between look-up and insert (servers other than SQLite)
            with Session(self.engine) as session:
                return session.scalars(same).one()

    def has_stamp(self, folder: Path, stamp: str) -> bool:
        """Return whether ``folder`` was registered in exactly this state of its files."""
        query = select(Evaluation.id).where(Evaluation.folder == _address(folder), Evaluation.stamp == stamp)
        with reading(self.engine) as connection:
            return connection.execute(query).first() is not None

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return all checkpoints, or those called ``name``; newest last."""
        query = select(Checkpoint).order_by(Checkpoint.id)
        return self._all(query if name is None else query.where(Checkpoint.name == name))

    def evaluations(self, *, all_states: bool = False) -> list[Evaluation]:
        """Return the newest state of every evaluation folder (or all states), oldest first."""
        query = select(Evaluation).order_by(Evaluation.id)
        return self._all(query if all_states else query.where(Evaluation.id.in_(_current())))

    def results(self, *, weight_hash: str | None = None, all_states: bool = False) -> list[Result]:
        """Return the results of the newest states (or of all), optionally of one checkpoint only."""
        query = select(Result).order_by(Result.id)
        if not all_states:
            query = query.where(Result.evaluation_id.in_(_current()))
        return self._all(query if weight_hash is None else query.where(Result.weight_hash == weight_hash))

    def add_pair_test(self, result_a: int, result_b: int, test: PairedTest) -> None:
        """Keep a paired test of two results; a pair that is there already stays as it is."""
        values = {name: getattr(test, name) for name in _TEST_FIELDS}
        same = select(PairTest.id).where(PairTest.result_a == result_a, PairTest.result_b == result_b)
        with contextlib.suppress(IntegrityError), Session(self.engine) as session, session.begin():
            if session.scalar(same) is None:  # another process may still add it first: the same test, kept once
                session.add(PairTest(result_a=result_a, result_b=result_b, **values))

    def add_pair_tests(self, tests: Iterable[tuple[int, int, PairedTest]]) -> None:
        """Keep many paired tests at once; pairs that are there already stay as they are."""
        known = self.pair_keys()
        rows = [
            {"result_a": a, "result_b": b, **{name: getattr(test, name) for name in _TEST_FIELDS}}
            for a, b, test in tests
            if (a, b) not in known
        ]
        if not rows:
            return
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(PairTest), rows)
        except IntegrityError:  # another process kept some of them meanwhile: one at a time, skipping those
            for row in rows:
                a, b = row.pop("result_a"), row.pop("result_b")
                self.add_pair_test(a, b, PairedTest(**row))

    def pair_keys(self) -> frozenset[tuple[int, int]]:
        """Return the ids of the results of every kept paired test."""
        with reading(self.engine) as connection:
            rows = connection.execute(select(PairTest.result_a, PairTest.result_b))
            return frozenset((a, b) for a, b in rows)

    def pair_values(self) -> dict[tuple[int, int], PairedTest]:
        """Return the kept paired tests as plain values; much faster than :meth:`pair_tests` where there are many."""
        columns = [getattr(PairTest, name) for name in ("result_a", "result_b", *_TEST_FIELDS)]
        with reading(self.engine) as connection:
            return {(row[0], row[1]): PairedTest(*row[2:]) for row in connection.execute(select(*columns))}

    def version(self, *, tests: bool = True) -> tuple[int, ...]:
        """Return numbers that change whenever something was added to the store; ``tests`` counts paired tests too."""
        tables = [table for table in _TABLES if tests or table is not PairTest]
        counts = [select(func.count(), func.coalesce(func.max(table.id), 0)).select_from(table) for table in tables]
        with reading(self.engine) as connection:
            return tuple(int(value) for query in counts for value in connection.execute(query).one())

    def pair_tests(self) -> dict[tuple[int, int], PairTest]:
        """Return the kept paired tests by the ids of their results."""
        return {(test.result_a, test.result_b): test for test in self._all(select(PairTest))}

    def _all(self, query: Any) -> list[Any]:
        with Session(self.engine.execution_options(dare_reads=True)) as session:
            return list(session.scalars(query))

    def _add_once(self, evaluation: Evaluation, results: Sequence[Result]) -> int:
        same = select(Evaluation).where(Evaluation.folder == evaluation.folder, Evaluation.digest == evaluation.digest)
        try:
            with Session(self.engine) as session, session.begin():
                known = session.scalar(same)
                if known is not None:
                    known.stamp = evaluation.stamp  # same results, files touched: spare the next index run the reading
                    return known.id
                session.add(evaluation)
                session.flush()
                for result in results:
                    result.evaluation_id = evaluation.id
                session.add_all(results)
                return evaluation.id
        except IntegrityError:  # as in register_checkpoint
            with Session(self.engine) as session:
                return session.scalars(same).one().id


def folder_stamp(folder: Path) -> str:
    """Return a hash over names, sizes and times of the files in :data:`_READ`."""
    parts = []
    for pattern in _READ:
        for path in sorted(folder.glob(pattern)):
            state = path.stat() if path.exists() else path.lstat()  # a link may lead nowhere
            parts.append(f"{path.relative_to(folder)}|{state.st_size}|{state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def spec_digest(spec: dict[str, Any] | None) -> str | None:
    """Return the SHA-256 of a stored decode spec, equal to ``DecodeSpec.digest()`` of the same settings."""
    return None if spec is None else _sha256(spec)


def _current() -> Any:
    return select(func.max(Evaluation.id)).group_by(Evaluation.folder)


def _evaluation(run: Run, rows: list[RunRow], stamp: str) -> Evaluation:
    manifest = run.manifest.to_dict() if run.manifest else None
    content = [manifest, [[found.row.to_dict(), found.settings] for found in rows]]
    return Evaluation(
        run_id=run.run_id,
        folder=_address(run.folder),
        digest=_sha256(content),
        stamp=stamp,
        origin=run.origin,
        status=run.status,
        started=run.started,
        finished=run.manifest.finished if run.manifest else None,
        manifest=manifest,
        labels=list(run.problems),
        registered=now(),
    )


def _result(found: RunRow) -> Result:
    row = found.row
    return Result(
        **{name: getattr(row, name) for name in ("model", "dataset", "metric")},
        **{name: getattr(row, name) for name in ("value", "low", "high", "n", "expected", "nfe", "tpf", "tps")},
        weight_hash=found.settings.get("weight_hash"),
        spec_digest=spec_digest(row.decode_spec),
        row=row.to_dict(),
        settings=found.settings,
        labels=row.labels,
    )


def _checkpoint(folder: Path) -> Checkpoint:
    manifest, labels = _checkpoint_manifest(folder)
    entry = manifest.models[0] if manifest and manifest.models else None
    return Checkpoint(
        name=entry.name if entry else folder.name,
        folder=_address(folder),
        weight_hash=weight_hash(folder),
        family=entry.family if entry else "",
        algorithm=entry.algorithm if entry else None,
        parent=entry.parent if entry else None,
        parent_hash=entry.parent_hash if entry else None,
        manifest=manifest.to_dict() if manifest else None,
        labels=labels,
        registered=now(),
    )


def _checkpoint_manifest(folder: Path) -> tuple[RunManifest | None, list[str]]:
    reasons = []
    for place in (folder, folder.parent):
        try:
            manifest = read_manifest(place)
        except DareError as error:
            reasons.append(error.what)
            continue
        if manifest.kind == "training":
            return manifest, []
    return None, ["training manifest: " + (reasons[-1] if reasons else "none here")]


def _refuse_unspecified(run: Run, rows: list[RunRow]) -> None:
    lacking = sorted({f"{found.row.model} on {found.row.dataset}" for found in rows if not found.row.decode_spec})
    if run.origin == "dare" and (run.manifest is None or lacking):
        raise DataError(
            "a score without its decode spec cannot enter the store",
            seen=", ".join(lacking) or "; ".join(run.problems),
            allowed="a manifest with a decode spec for every model and data set",
            remedy=f"dare-eval index {run.folder} keeps such rows, labelled",
        )


def _address(folder: Path) -> str:
    """Return the folder as the store keeps it; raises ``DataError`` for a name that is no UTF-8 text.

    Such a name would come back from the store as another one, and the run could never be opened again.
    """
    found = str(folder.resolve())
    if storable(found) != found:
        raise DataError("the folder's name is not UTF-8", seen=storable(found), remedy="rename it, then index again")
    return found


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
