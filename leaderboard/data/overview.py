"""The overview: one row per model of a run, one column per benchmark, tie groups within each column.

Filters and pages are applied here, so that a page only draws. Tie groups are made over the cells that the filter lets
through: a reader who looks at one family sees which of its members differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dare_eval.records.stats import minimum_detectable_effect
from dare_eval.report.ties import Tie, tie_groups
from leaderboard.data.board import Board, Cell, columns_of

PAGE_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What to show; an empty choice shows everything."""

    families: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    text: str = ""
    """Part of a model's or run's name."""
    complete_only: bool = False
    all_metrics: bool = False
    best_of_family: bool = False
    """One row per family with its best score on each benchmark, in place of one row per model of a run."""
    newest_only: bool = False
    """Of the same weights under the same decode settings on one data set only the newest run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One model of one run, or a family's best on each benchmark (``evaluation`` is None)."""

    evaluation: int | None
    run: str
    model: str
    name: str
    family: str
    started: str
    status: str
    cells: Mapping[tuple[str, str], Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One benchmark in one metric."""

    dataset: str
    metric: str
    n: int
    """Most items any cell has."""
    detectable: float
    """Smallest true difference of two accuracies that so many items show, in points (80 % power, unpaired)."""

    @property
    def key(self) -> tuple[str, str]:
        """Return data set and metric."""
        return self.dataset, self.metric


@dataclass(frozen=True, slots=True)
class Overview:
    """What one page of the overview shows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    ties: Mapping[int, Tie]
    """By result id."""
    page: int
    pages: int
    total: int
    """Rows that passed the filter."""


def options(board: Board) -> dict[str, list[str]]:
    """Return what can be filtered by."""
    return {
        "families": sorted({cell.family for cell in board.cells}),
        "benchmarks": sorted({cell.dataset for cell in board.cells}),
        "policies": sorted({cell.policy for cell in board.cells}),
    }


def overview(board: Board, filters: Filters, page: int = 1, sort: tuple[str, str] | None = None) -> Overview:
    """Return page ``page`` (from 1) of the rows that pass ``filters``, best first in column ``sort``, else by name."""
    cells = select(board.cells, filters)
    keys = columns_of(cells, all_metrics=filters.all_metrics)
    shown_cells = [cell for cell in cells if cell.column in set(keys)]
    ties = ties_of(board, cells, keys)
    rows = _best(shown_cells, ties) if filters.best_of_family else _rows(shown_cells)
    rows.sort(key=lambda row: (row.family, row.name, row.started, row.run))
    if sort in keys:
        rows.sort(key=lambda row: -_value(row, sort))
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    page = min(max(page, 1), pages)
    shown = rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return Overview(
        columns=tuple(_column(key, cells) for key in keys),
        rows=tuple(shown),
        ties=ties,
        page=page,
        pages=pages,
        total=len(rows),
    )


def select(cells: Iterable[Cell], filters: Filters) -> list[Cell]:
    """Return the cells that pass ``filters``."""
    wanted = filters.text.casefold()
    found = [
        cell
        for cell in cells
        if (not filters.families or cell.family in filters.families)
        and (not filters.benchmarks or cell.dataset in filters.benchmarks)
        and (not filters.policies or cell.policy in filters.policies)
        and (not wanted or wanted in f"{cell.name} {cell.model} {cell.run}".casefold())
        and (not filters.complete_only or cell.complete)
    ]
    return _newest(found) if filters.newest_only else found


def ties_of(board: Board, cells: Sequence[Cell], keys: Iterable[tuple[str, str]]) -> dict[int, Tie]:
    """Return the tie of every result in the columns ``keys``."""
    found: dict[int, Tie] = {}
    for key in keys:
        column = [cell for cell in cells if cell.column == key and cell.value is not None]
        column.sort(key=lambda cell: (-(cell.value or 0.0), cell.id))
        found |= tie_groups([cell.id for cell in column], board.p)
    return found


def _rows(cells: Iterable[Cell]) -> list[Row]:
    grouped: dict[tuple[int, str], dict[tuple[str, str], Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.evaluation, cell.model), {})[cell.column] = cell
    rows = []
    for (evaluation, model), found in grouped.items():
        first = next(iter(found.values()))
        rows.append(Row(evaluation, first.run, model, first.name, first.family, first.started, first.status, found))
    return rows


def _best(cells: Iterable[Cell], ties: Mapping[int, Tie]) -> list[Row]:
    """Return a row per family; a score of the column's own question goes before one of another question."""

    def standing(cell: Cell) -> tuple[bool, bool, float, int]:
        pooled = cell.id in ties and ties[cell.id].pool == 0
        return cell.value is not None, pooled, cell.value or 0.0, cell.id

    best: dict[str, dict[tuple[str, str], Cell]] = {}
    for cell in sorted(cells, key=standing):
        best.setdefault(cell.family, {})[cell.column] = cell
    return [Row(None, "", family, family, family, "", "finished", found) for family, found in best.items()]


def _column(key: tuple[str, str], cells: Sequence[Cell]) -> Column:
    n = max((cell.n for cell in cells if cell.column == key), default=0)
    return Column(*key, n, 100 * minimum_detectable_effect(n) if n else 100.0)


def _newest(cells: Sequence[Cell]) -> list[Cell]:
    newest: dict[tuple[str | None, ...], Cell] = {}
    for cell in sorted(cells, key=lambda one: (one.started, one.id)):
        weights = cell.weight_hash or f"run {cell.evaluation}"  # unknown weights are nobody's repeat
        newest[weights, cell.model, cell.spec_digest, *cell.column] = cell
    kept = {cell.id for cell in newest.values()}
    return [cell for cell in cells if cell.id in kept]


def _value(row: Row, key: tuple[str, str] | None) -> float:
    cell = row.cells.get(key) if key else None
    return cell.value if cell is not None and cell.value is not None else -1.0
