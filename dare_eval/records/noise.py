"""Noise floor: how many verdicts flip when only batch size, attention back end or dtype changes.

``dare-eval noise CONFIG`` measures it and leaves ``noise.json`` in the run's folder; the store indexes that file with
the run, and comparisons show the floor under each difference. Leaves out the measuring (``report.noise``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, insert, select

from dare_eval.errors import DataError
from dare_eval.records.atomic import read_json, write_json
from dare_eval.records.database import reading
from dare_eval.records.shapes import LIST, NUMBER, TEXT, WHOLE, Rules, check_shape
from dare_eval.records.tables import NoiseFloor

if TYPE_CHECKING:
    from dare_eval.records.compare import Comparison
    from dare_eval.records.runs import Run

NAME, VERSION = "noise.json", 1
_FIELDS = ("model", "dataset", "weight_hash", "n", "flip_rate", "low", "high", "variations")
_TYPES: Rules = (
    (("model", "dataset", "weight_hash"), TEXT),
    (("n",), WHOLE),
    (("flip_rate", "low", "high"), NUMBER),
    (("variations",), LIST),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The noise floor of one model on one benchmark; percent of items."""

    model: str
    dataset: str
    weight_hash: str | None
    n: int
    flip_rate: float
    """Largest share of items whose verdict one variation flipped."""
    low: float
    high: float
    """95 % (Wilson)."""
    variations: list[dict[str, Any]]
    """One per variation: ``axis``, ``value``, ``n``, ``flips``, ``other_texts``, ``delta`` (points)."""

    @property
    def what(self) -> str:
        """Return what was varied, in words."""
        values: dict[str, list[str]] = {}
        for one in self.variations:
            values.setdefault(str(one.get("axis")), []).append(str(one.get("value")))
        return "; ".join(f"{axis} {', '.join(found)}" for axis, found in values.items())


def write_noise(folder: Path, floors: Sequence[Floor]) -> Path:
    """Write ``floors`` beside the run they were measured in and return the path."""
    write_json(folder / NAME, {"version": VERSION, "floors": [dataclasses.asdict(one) for one in floors]})
    return folder / NAME


def read_noise(folder: Path) -> list[Floor]:
    """Return the floors in ``folder``; empty without a file; ``DataError`` for a damaged or newer one."""
    path = folder / NAME
    if not path.exists():
        return []
    found = read_json(path, "noise floor")
    if not isinstance(found, dict) or found.get("version") != VERSION or not isinstance(found.get("floors"), list):
        raise DataError("noise floor of an unknown version or shape", seen=path, remedy="dare-eval noise CONFIG")
    return [_floor(entry) for entry in found["floors"]]


def add_floors(engine: Engine, evaluation: int, floors: Sequence[Floor]) -> None:
    """Keep the floors of an evaluation; those that are there already stay as they are."""
    known = {(one.model, one.dataset) for number, one in _stored(engine) if number == evaluation}
    rows = [
        {"evaluation_id": evaluation, **{name: getattr(one, name) for name in _FIELDS}}
        for one in floors
        if (one.model, one.dataset) not in known
    ]
    if rows:
        with engine.begin() as connection:
            connection.execute(insert(NoiseFloor), rows)


def floors_of(engine: Engine, dataset: str | None = None) -> list[Floor]:
    """Return the stored floors, of one benchmark or of all; newest last."""
    return [one for _, one in _stored(engine) if dataset in (None, one.dataset)]


def with_floors(found: Comparison, engine: Engine, *sides: tuple[Run, str]) -> Comparison:
    """Return ``found`` with the noise floor under each benchmark.

    The floor is one of the models compared (``sides``: run and model), else the largest measured on that benchmark.
    """
    benches = []
    for bench in found.benchmarks:
        weights = {run.settings(model, bench.dataset).get("weight_hash") for run, model in sides} - {None}
        known = floors_of(engine, bench.dataset)
        own = [one for one in known if one.weight_hash in weights]
        chosen = max(own or known, key=lambda one: one.flip_rate, default=None)
        if chosen is not None:
            source = f"{chosen.model}: {chosen.what} (n = {chosen.n})"
            bench = dataclasses.replace(bench, floor=chosen.flip_rate, floor_source=source)
        benches.append(bench)
    return dataclasses.replace(found, benchmarks=tuple(benches))


def _stored(engine: Engine) -> list[tuple[int, Floor]]:
    columns = [getattr(NoiseFloor, name) for name in ("evaluation_id", *_FIELDS)]
    with reading(engine) as connection:
        rows = connection.execute(select(*columns).order_by(NoiseFloor.id)).all()
    return [(row[0], Floor(**dict(zip(_FIELDS, row[1:], strict=True)))) for row in rows]


def _floor(entry: Any) -> Floor:
    check_shape(entry, _TYPES, "noise floor", needed=("model", "dataset", "n", "flip_rate", "low", "high"))
    values = {name: entry.get(name) for name in _FIELDS}
    return Floor(**(values | {"variations": list(entry.get("variations") or [])}))
