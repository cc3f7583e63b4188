"""The board as static HTML pages, as for GitHub Pages: ``dare-eval board --static DIR``.

Scores, intervals, ties, cost, settings, curves, comparisons and problems are there; item records are not, since prompts
and references of benchmarks may not be published. The same store gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dare_eval.errors import DareError, UsageError
from dare_eval.records.atomic import write_atomic
from dare_eval.records.database import database_url
from dare_eval.records.exports import export_text
from dare_eval.records.store import Store
from leaderboard.areas import AREA_COLUMNS, area_rows
from leaderboard.data.algorithms import bases, compare_algorithms, decodings, members
from leaderboard.data.board import Board, Cell, columns_of, load_board
from leaderboard.data.overview import Filters, Overview, overview
from leaderboard.data.pareto import COSTS, strategies
from leaderboard.data.source import refresh
from leaderboard.duels import DUEL_COLUMNS, LEDGER_COLUMN, SCORE_COLUMNS, duel_rows, ledger_rows, score_rows
from leaderboard.markup import STYLE, Markup, el, joined, table
from leaderboard.matrix import cost_line, interval, matrix, spec_line
from leaderboard.svg import pareto_svg

PAGES = (
    ("index.html", "Results"),
    ("cost.html", "Quality and cost"),
    ("algorithms.html", "Algorithms"),
    ("problems.html", "Problems"),
)
_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 80rem; }
nav a { margin-right: 1rem; } h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.dare-svg { width: 100%; max-width: 44rem; height: auto; } figure { margin: 0; }
body { overflow-wrap: anywhere; } pre { white-space: pre-wrap; }
"""


def write_snapshot(folder: Path, board: Board, exports: Sequence[tuple[str, str]] = ()) -> list[Path]:
    """Write all pages of ``board`` and ``exports`` (file name, text) into ``folder`` and return their paths."""
    files = [(name, _page(title, _body(name, board))) for name, title in PAGES]
    files += [(f"runs/{number}.html", _run(board, number)) for number in board.runs]
    written = []
    for name, text in [*files, *exports]:
        write_atomic(folder / name, str(text))
        written.append(folder / name)
    return written


def _body(name: str, board: Board) -> list[Markup]:
    if name == "index.html":
        return _results(board)
    if name == "cost.html":
        return _cost(board)
    return _algorithms(board) if name == "algorithms.html" else _problems(board)


def _results(board: Board) -> list[Markup]:
    if board.empty:
        return [el("p", "No runs yet. To make some: "), el("pre", "bash scripts/demo.sh")]
    parts = [el("p", _summary(board))]
    page = 1
    while True:
        shown: Overview = overview(board, Filters(), page)
        parts.append(matrix(shown, _run_address, lambda number: f"runs/{number}.html"))
        if page >= shown.pages:
            break
        page += 1
    downloads = joined([el("a", "CSV", href="results.csv"), el("a", "JSON", href="results.json")], ", ")
    note = (
        "Score in percent with its 95 % interval. Results of one column with the same badge cannot be told apart by "
        "paired tests on the same items (Holm); order within a badge means nothing; a letter marks results that answer "
        "another question. NFE: forwards of the denoiser per item."
    )
    return [*parts, el("p", note, class_="dare-small"), el("p", "All results: ", downloads)]


def _cost(board: Board) -> list[Markup]:
    parts: list[Markup] = []
    for column in columns_of(board.cells, all_metrics=True):
        found = strategies(board, column)
        pictures = [pareto_svg(found, field, axis) for axis, field in list(COSTS.items())[:2]]
        if any(pictures):
            parts += [el("h2", f"{column[0]}, {column[1]} %"), *[one for one in pictures if one is not None]]
            rows = area_rows(found)
            parts += [table(AREA_COLUMNS, rows, numbers=(1, 2, 3), label="AUP")] if rows else []
    return parts or [el("p", "No result with a counted cost.")]


def _algorithms(board: Board) -> list[Markup]:
    parts: list[Markup] = []
    for base in bases(board):
        cells = members(board, base)
        parts.append(el("h2", f"Trained from {base.name}"))
        for column in columns_of(cells, all_metrics=True):
            digest = decodings(cells, column)[0]
            found = compare_algorithms(board, base, column, digest)
            spec = next(spec_line(c.spec) for c in cells if c.column == column and (c.spec_digest or "") == digest)
            parts.append(el("h3", f"{column[0]}, {column[1]} %: {spec}"))
            parts.append(table(SCORE_COLUMNS, score_rows(found.rows), numbers=(1, 2, 3), label="Algorithms"))
            if found.duels:
                parts.append(table(DUEL_COLUMNS, duel_rows(found.duels), numbers=(1, 2, 3, 4), label="Differences"))
            names, rows = ledger_rows(found.rows)
            if rows:
                parts.append(table(["Spent", *names, LEDGER_COLUMN], rows, label="Budgets"))
    return parts or [el("p", "No evaluated checkpoint names what it was trained from.")]


def _problems(board: Board) -> list[Markup]:
    rows = [("damaged" if one.serious else "not recorded", one.run, one.where, one.what) for one in board.problems]
    return [table(["Kind", "Run", "Where", "What"], rows, label="Problems") if rows else el("p", "None.")]


def _run(board: Board, number: int) -> Markup:
    run = board.runs[number]
    cells = [cell for cell in board.cells if cell.evaluation == number]
    parts: list[Markup] = [el("p", f"{run.status}; started {run.started or 'not recorded'}; made by {run.origin}")]
    for label in run.labels:
        parts.append(el("p", label, class_="dare-warn"))
    for cell in cells:
        score = "no score" if cell.value is None else f"{cell.value:.2f} % [{interval(cell)}]"
        parts.append(el("h2", f"{cell.name} on {cell.dataset}, {cell.metric}", id=f"r{cell.id}"))
        parts.append(el("p", f"{score}; {cost_line(cell)}"))
        parts += [el("p", label, class_="dare-warn") for label in cell.labels]
        parts.append(el("pre", json.dumps(dict(cell.spec), indent=1, sort_keys=True, default=str)))
    return _page(f"Run {run.run_id}", parts, up="../")


def _page(title: str, body: Sequence[Markup], up: str = "") -> Markup:
    links = [el("a", name, href=f"{up}{file}") for file, name in PAGES]
    head = [
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{title}, DARE board"),
        el("style", Markup(STYLE + _PAGE_STYLE)),
    ]
    page = el("html", el("head", *head), el("body", el("nav", *links), el("h1", title), *body), lang="en")
    return Markup(f"<!doctype html>\n{page}\n")


def _summary(board: Board) -> str:
    newest = max((run.finished or run.started or "" for run in board.runs.values()), default="")
    return f"{len(board.runs)} runs, {len(board.cells)} results; newest {newest or 'not recorded'}."


def _run_address(cell: Cell) -> str:
    return f"runs/{cell.evaluation}.html#r{cell.id}"


def _rest(error: DareError) -> list[tuple[str, object]]:
    return [("seen", error.seen), ("allowed", error.allowed), ("remedy", error.remedy)]


def main(arguments: Sequence[str]) -> int:
    """Write the snapshot of the store that ``DARE_DB`` names; return the exit code."""
    try:
        if len(arguments) != 1:
            raise UsageError("one folder is needed", seen=" ".join(arguments) or "none", remedy="board --static DIR")
        problems = refresh()
        store = Store()
        board = load_board(database_url(), store.version(), problems)
        results = store.results()
        runs = {run.id: run.run_id for run in board.runs.values()}
        exports = [(f"results.{kind}", export_text(results, kind, runs=runs)) for kind in ("csv", "json")]
        files = write_snapshot(Path(arguments[0]), board, exports)
    except DareError as error:
        lines = [error.what, *[f"{name}: {value}" for name, value in _rest(error) if value]]
        sys.stderr.write("\n".join(lines) + "\n")
        return error.exit_code
    sys.stdout.write(f"{len(files)} files; open {files[0]}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
