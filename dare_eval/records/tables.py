"""The store's tables: checkpoints, evaluations, results, noise floors, and a cache of pairwise tests.

The store is an index over run folders. Rows are only added; a checkpoint or evaluation that changed on disk is a
new row, and readers take the newest row of a folder. Every change of these tables needs a migration beside this
file (``migrations/versions``); a test compares both.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from dare_eval.records.safe import storable

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class StoredText(TypeDecorator[str]):
    """Text of any origin: what no server takes (NUL, lone surrogates) is escaped on its way in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return ``value`` as it is stored; also what a query compares with."""
        return None if value is None else storable(value)


class Base(DeclarativeBase):
    """Common metadata; constraint names are spelt out so that migrations can refer to them on every server."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own form
        str: StoredText, float: Double, dict[str, Any]: JSON, list[str]: JSON, list[Any]: JSON,
    }  # fmt: skip


class Checkpoint(Base):
    """A trained model."""

    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("folder", "weight_hash"), Index(None, "name"), Index(None, "weight_hash"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str]
    folder: Mapped[str]
    """Folder of the model files."""
    weight_hash: Mapped[str]
    family: Mapped[str]
    algorithm: Mapped[str | None]
    parent: Mapped[str | None]
    parent_hash: Mapped[str | None]
    manifest: Mapped[dict[str, Any] | None]
    labels: Mapped[list[str]]
    """What is not known about it."""
    registered: Mapped[str]
    """UTC, ISO 8601."""


class Evaluation(Base):
    """One evaluation run in one state of its folder."""

    __tablename__ = "evaluations"
    __table_args__ = (UniqueConstraint("folder", "digest"), Index(None, "run_id"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    run_id: Mapped[str]
    folder: Mapped[str]
    digest: Mapped[str]
    """SHA-256 over manifest and results; the same folder with other results is a new row."""
    stamp: Mapped[str]
    """Hash of names, sizes and times of the files read, to skip folders that did not change."""
    origin: Mapped[str]
    """``dare`` or ``opencompass``."""
    status: Mapped[str]
    started: Mapped[str | None]
    finished: Mapped[str | None]
    manifest: Mapped[dict[str, Any] | None]
    labels: Mapped[list[str]]
    registered: Mapped[str]


class Result(Base):
    """One model on one data set in one metric; see ``records.summary.ResultRow`` for meanings and units."""

    __tablename__ = "results"
    __table_args__ = (Index(None, "evaluation_id"), Index(None, "weight_hash"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id"))
    model: Mapped[str]
    dataset: Mapped[str]
    metric: Mapped[str]
    value: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    n: Mapped[int]
    expected: Mapped[int | None]
    nfe: Mapped[float | None]
    tpf: Mapped[float | None]
    tps: Mapped[float | None]
    weight_hash: Mapped[str | None]
    spec_digest: Mapped[str | None]
    """SHA-256 of the decode spec."""
    row: Mapped[dict[str, Any]]
    """The whole row as ``report.json`` holds it."""
    settings: Mapped[dict[str, Any]]
    """What ``records.comparable`` compares."""
    labels: Mapped[list[str]]


class PairTest(Base):
    """A paired test of two results, kept so that a board need not resample again."""

    __tablename__ = "pair_tests"
    __table_args__ = (UniqueConstraint("result_a", "result_b"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    result_a: Mapped[int] = mapped_column(ForeignKey("results.id"))
    result_b: Mapped[int] = mapped_column(ForeignKey("results.id"))
    n: Mapped[int]
    delta: Mapped[float]
    """Share, b minus a."""
    low: Mapped[float]
    high: Mapped[float]
    p: Mapped[float]
    wins: Mapped[int]
    losses: Mapped[int]
    method: Mapped[str]


class NoiseFloor(Base):
    """How many verdicts flip when nothing of substance changes; see ``records.noise.Floor``."""

    __tablename__ = "noise_floors"
    __table_args__ = (UniqueConstraint("evaluation_id", "model", "dataset"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id"))
    model: Mapped[str]
    dataset: Mapped[str]
    weight_hash: Mapped[str | None]
    n: Mapped[int]
    flip_rate: Mapped[float]
    """Percent of items."""
    low: Mapped[float]
    high: Mapped[float]
    variations: Mapped[list[Any]]
