"""Training algorithms from one base: seeds pooled item by item, every pair tested, what each one spent.

An algorithm's value of an item is its mean over seeds, so that a paired test asks about the algorithm on these items;
the spread between seeds stands beside it and is not part of the interval. p is adjusted over all pairs shown (Holm).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dare_eval.errors import DareError
from dare_eval.records.column_tests import REFUSED, Scored, column_tests, common_items
from dare_eval.records.compare import ALPHA
from dare_eval.records.intervals import bootstrap, wilson
from dare_eval.records.ledger import TOLERANCE, Budget
from dare_eval.records.significance import PairedTest, holm
from dare_eval.records.vectors import Vectors, read_vectors
from leaderboard.data.board import Board, Cell
from leaderboard.data.lineage import Lineage, lineages
from leaderboard.data.pareto import stem

BASE = "base"


@dataclass(frozen=True, slots=True)
class Base:
    """A model that others were trained from."""

    key: str
    """Its weight hash, or its name where the hash is not known."""
    name: str


@dataclass(frozen=True, slots=True)
class Pooled:
    """One algorithm on one benchmark, all seeds together."""

    algorithm: str
    cells: tuple[Cell, ...]
    lineages: tuple[Lineage, ...]
    value: float
    """Percent over the items that all seeds answered."""
    low: float
    high: float
    n: int

    @property
    def seed_values(self) -> list[float]:
        """Return each seed's score in percent."""
        return [cell.value for cell in self.cells if cell.value is not None]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two algorithms on their common items; ``test`` is the second minus the first, None when refused."""

    a: str
    b: str
    test: PairedTest | None
    p_holm: float | None
    refused: str
    floor: float | None = None
    """Noise floor in percent of items, where one was measured."""

    @property
    def winner(self) -> str | None:
        """Return the better algorithm; None within the noise: adjusted p, and the noise floor where it is known."""
        if self.test is None or self.p_holm is None or self.p_holm >= ALPHA or self.below_floor:
            return None
        return self.b if self.test.delta > 0 else self.a

    @property
    def below_floor(self) -> bool:
        """Whether the difference is no larger than what batch size, attention or dtype change."""
        return self.test is not None and self.floor is not None and abs(100 * self.test.delta) <= self.floor


@dataclass(frozen=True, slots=True)
class AlgorithmTable:
    """Everything the page shows about one base on one benchmark."""

    rows: tuple[Pooled, ...]
    duels: tuple[Duel, ...]
    left_out: tuple[str, ...]
    """Results without readable items."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One budget entry over the algorithms shown."""

    name: str
    values: tuple[float | None, ...]
    unequal: bool


def bases(board: Board) -> list[Base]:
    """Return every base that some evaluated model was trained from, by name."""
    found: dict[str, str] = {}
    for line in lineages(board).values():
        key = line.parent_hash or line.parent
        if key:
            found.setdefault(key, line.parent or key[:12])
    return sorted((Base(key, name) for key, name in found.items()), key=lambda base: base.name)


def members(board: Board, base: Base) -> list[Cell]:
    """Return the results of ``base`` and of everything trained from it that have item records."""
    lines = lineages(board)
    return [
        cell
        for cell in board.cells
        if cell.value is not None and cell.measures and _algorithm(cell, lines[cell.id], base) is not None
    ]


def decodings(cells: Sequence[Cell], column: tuple[str, str]) -> list[str]:
    """Return the decode-spec digests used on ``column``, the one with most algorithms first."""
    count: dict[str, set[str]] = {}
    for cell in cells:
        if cell.column == column:
            count.setdefault(cell.spec_digest or "", set()).add(cell.weight_hash or cell.model)
    return sorted(count, key=lambda digest: (-len(count[digest]), digest))


@functools.lru_cache(maxsize=64)
def compare_algorithms(board: Board, base: Base, column: tuple[str, str], digest: str) -> AlgorithmTable:
    """Compare the algorithms trained from ``base`` on ``column`` under the decode spec ``digest``."""
    lines = lineages(board)
    grouped = _grouped(board, base, column, digest)
    rows: list[Pooled] = []
    scored: list[Scored] = []
    left_out: list[str] = []
    for name in sorted(grouped, key=lambda one: (one != BASE, one)):
        cells = tuple(grouped[name].values())
        items = _pool(cells)
        if items is None:
            left_out += [f"{cell.model} ({cell.run})" for cell in cells]
            continue
        scored.append(Scored(len(rows), cells[0].settings, len(cells) > 1 or cells[0].measures == "credit", items))
        rows.append(_row(name, cells, [lines[cell.id] for cell in cells], items, graded=scored[-1].graded))
    alike = any(one.graded for one in scored)  # one yardstick: verdicts become credit where another pools seeds
    scored = [Scored(one.id, one.settings, alike, _as_credit(one) if alike else one.items) for one in scored]
    floor = board.floor(column[0], {cell.weight_hash for row in rows for cell in row.cells})
    return AlgorithmTable(tuple(rows), tuple(_duels(rows, scored, floor)), tuple(left_out))


def _grouped(board: Board, base: Base, column: tuple[str, str], digest: str) -> dict[str, dict[str, Cell]]:
    """Return the newest result of each checkpoint by algorithm; recipes of one algorithm stand apart by name."""
    lines = lineages(board)
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in sorted(members(board, base), key=lambda one: (one.started, one.id)):
        name = _algorithm(cell, lines[cell.id], base)
        if cell.column == column and (cell.spec_digest or "") == digest and name is not None:
            recipe = "" if name == BASE else lines[cell.id].recipe
            found.setdefault((name, recipe), {})[cell.weight_hash or str(cell.id)] = cell
    algorithms = [name for name, _ in found]
    named: dict[str, dict[str, Cell]] = {}
    for (name, _), cells in found.items():
        label = name
        if algorithms.count(name) > 1:
            label = f"{name}: {stem(sorted(lines[cell.id].name for cell in cells.values()))}"
        while label in named:
            label += "'"
        named[label] = cells
    return named


def ledger(rows: Sequence[Pooled]) -> list[LedgerLine]:
    """Return what training spent, summed over seeds and divided by them; lines that nobody measured are left out."""
    trained = [row for row in rows if row.algorithm != BASE]
    found = []
    for name in Budget.__dataclass_fields__:
        values = tuple(_mean([getattr(line.budget, name, None) for line in row.lineages]) for row in trained)
        known = [value for value in values if value is not None]
        if known:
            spread = max(known) - min(known) > TOLERANCE * max(abs(value) for value in known)
            found.append(LedgerLine(name, values, spread or len(known) < len(values)))
    return found


def _algorithm(cell: Cell, line: Lineage, base: Base) -> str | None:
    if base.key in (cell.weight_hash, line.name):
        return BASE
    return (line.algorithm or "not recorded") if base.key in (line.parent_hash, line.parent) else None


def _pool(cells: Sequence[Cell]) -> Vectors | None:
    """Return the columns of the items that all ``cells`` answered, credit averaged; None when one cannot be read."""
    tables: list[Vectors] = []
    for cell in cells:
        try:
            tables.append(read_vectors(Path(cell.folder), cell.stamp, cell.model, cell.dataset))
        except (DareError, OSError):  # named by the caller
            return None
    first = tables[0]
    for table in tables[1:]:
        first, _ = common_items(first, table)
    if not len(first):
        return None
    pooled = first.copy()
    field = "credit" if cells[0].measures == "credit" else "correct"
    values = [common_items(first, table)[1][field].astype(np.float64) for table in tables]
    pooled["credit"] = np.mean(values, axis=0)
    return pooled


def _row(
    name: str, cells: tuple[Cell, ...], lines: Sequence[Lineage], items: Vectors, *, graded: bool
) -> Pooled:  # fmt: skip
    credits, questions = items["credit"], items["question"]
    repeated = len(np.unique(questions)) < len(questions)
    if graded or repeated:
        found = bootstrap(credits, clusters=questions.tolist() if repeated else None)
    else:
        found = wilson(int(credits.sum()), len(credits))
    return Pooled(name, cells, tuple(lines), 100 * found.value, 100 * found.low, 100 * found.high, len(items))


def _duels(rows: Sequence[Pooled], scored: Sequence[Scored], floor: float | None) -> list[Duel]:
    tests = list(column_tests(scored))
    made = [test for _, _, test in tests if not test.method.startswith(REFUSED)]
    adjusted = iter(holm([test.p for test in made]))
    found = []
    for a, b, test in tests:
        names = rows[a].algorithm, rows[b].algorithm
        if test.method.startswith(REFUSED):
            found.append(Duel(*names, None, None, test.method.removeprefix(REFUSED)))
        else:
            found.append(Duel(*names, test, next(adjusted), "", floor))
    return found


def _as_credit(one: Scored) -> Vectors:
    if one.graded:
        return one.items
    items = one.items.copy()
    items["credit"] = items["correct"].astype(np.float64)
    return items


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
