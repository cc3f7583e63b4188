"""Sudoku 4x4: all 288 grids, puzzles with exactly one completion, splits that share no solution, trivial baselines.

Everything is enumerated. Which sets of given cells force a grid depends only on how the grid differs from the other
287, and relabelling digits does not change that, so 12 tables cover all grids; sampling then draws without
replacement and can neither repeat a puzzle nor run forever.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dare_eval.errors import UsageError, unknown

CELLS = 16
BLANKS = (6, 10)
"""Fewest and most empty cells of a generated puzzle; each count is equally likely."""
SPLIT_SOLUTIONS = {"train": 216, "validation": 24, "test": 48}
"""Solution grids a split owns. 240 grids are never tested on; 24 of them are kept for tuning."""

_UNITS = tuple(
    [tuple(range(4 * row, 4 * row + 4)) for row in range(4)]
    + [tuple(range(col, CELLS, 4)) for col in range(4)]
    + [(top, top + 1, top + 4, top + 5) for top in (0, 2, 8, 10)]
)


@dataclass(frozen=True, slots=True)
class SudokuPuzzle:
    """A puzzle and its only completion, both 16 characters row by row; 0 is an empty cell."""

    puzzle: str
    solution: str

    @property
    def blanks(self) -> int:
        """Return the number of empty cells."""
        return self.puzzle.count("0")


def is_grid(cells: str) -> bool:
    """Tell whether ``cells`` is a finished valid grid."""
    return len(cells) == CELLS and all({cells[index] for index in unit} == set("1234") for unit in _UNITS)


def keeps_givens(puzzle: str, cells: str) -> bool:
    """Tell whether ``cells`` has every given of ``puzzle``."""
    return len(cells) == len(puzzle) and all(given in ("0", cell) for given, cell in zip(puzzle, cells, strict=True))


@lru_cache(maxsize=1)
def grids() -> tuple[str, ...]:
    """Return the 288 valid grids in lexicographic order."""
    rows = ["".join(row) for row in itertools.permutations("1234")]
    bands = [upper + lower for upper in rows for lower in rows if _boxes_hold(upper + lower)]
    return tuple(sorted(cells for top in bands for bottom in bands if is_grid(cells := top + bottom)))


def _boxes_hold(band: str) -> bool:
    return len({band[0], band[1], band[4], band[5]}) == len({band[2], band[3], band[6], band[7]}) == 4


def completions(puzzle: str) -> list[str]:
    """Return every valid grid that keeps the givens of ``puzzle``."""
    return [grid for grid in grids() if keeps_givens(puzzle, grid)]


@lru_cache(maxsize=4)
def split_solutions(seed: int = 0) -> dict[str, tuple[str, ...]]:
    """Return the solution grids of each split; no grid is in two of them."""
    shuffled = list(grids())
    random.Random(f"sudoku-solutions:{seed}").shuffle(shuffled)
    owned: dict[str, tuple[str, ...]] = {}
    for name in ("test", "validation", "train"):
        owned[name] = tuple(sorted(shuffled[: SPLIT_SOLUTIONS[name]]))
        del shuffled[: SPLIT_SOLUTIONS[name]]
    return owned


def generate(
    split: str, count: int, *, seed: int = 0, blanks: tuple[int, int] = BLANKS, split_seed: int = 0
) -> list[SudokuPuzzle]:
    """Return ``count`` distinct puzzles with exactly one completion.

    The number of empty cells is uniform in ``blanks`` (both ends included), then the puzzle is uniform among all that
    exist for it. ``seed`` draws the puzzles, ``split_seed`` fixes which solutions belong to ``split``. Raises
    ``UsageError`` for an unknown split and for more puzzles than there are.
    """
    solutions = split_solutions(split_seed)
    if split not in solutions:
        raise unknown("sudoku split", split, solutions)
    rng = random.Random(f"sudoku:{split}:{seed}")
    wanted = [rng.randint(*blanks) for _ in range(count)]
    drawn = {number: _draw(solutions[split], number, wanted.count(number), rng) for number in sorted(set(wanted))}
    return [drawn[number].pop() for number in wanted]


def _draw(solutions: Sequence[str], blanks: int, count: int, rng: random.Random) -> list[SudokuPuzzle]:
    patterns = [_forcing_patterns(_canonical(solution), blanks) for solution in solutions]
    ends = list(itertools.accumulate(len(table) for table in patterns))
    if count > ends[-1]:
        raise UsageError(
            f"there are only {ends[-1]} puzzles with {blanks} empty cells in this split",
            seen=count,
            remedy="ask for fewer puzzles or a wider range of empty cells",
        )
    puzzles = []
    for index in rng.sample(range(ends[-1]), count):
        owner = int(np.searchsorted(ends, index, side="right"))
        mask = int(patterns[owner][index - ends[owner]])
        puzzles.append(SudokuPuzzle(_blanked(solutions[owner], mask), solutions[owner]))
    return puzzles


def _blanked(solution: str, givens: int) -> str:
    return "".join(cell if givens >> index & 1 else "0" for index, cell in enumerate(solution))


def _canonical(grid: str) -> str:
    """Return ``grid`` relabelled so that its first row is 1234."""
    return grid.translate(str.maketrans(grid[:4], "1234"))


@lru_cache(maxsize=256)
def _forcing_patterns(grid: str, blanks: int) -> npt.NDArray[np.uint32]:
    """Return, as bit sets of given cells, all patterns with ``blanks`` empty cells that leave ``grid`` the only one."""
    chosen: npt.NDArray[np.uint32] = _sets_of_size(CELLS - blanks)
    for difference in _smallest_differences(grid):
        chosen = chosen[(chosen & np.uint32(difference)) != 0]
    return chosen


@lru_cache(maxsize=CELLS + 1)
def _sets_of_size(size: int) -> npt.NDArray[np.uint32]:
    chosen = itertools.combinations(range(CELLS), size)
    return np.array([sum(1 << cell for cell in cells) for cells in chosen], dtype=np.uint32)


@lru_cache(maxsize=12)
def _smallest_differences(grid: str) -> tuple[int, ...]:
    """Return the sets of cells in which another grid differs, without those that contain a smaller one."""
    masks = {sum(1 << i for i in range(CELLS) if grid[i] != other[i]) for other in grids() if other != grid}
    kept: list[int] = []
    for mask in sorted(masks, key=lambda value: (value.bit_count(), value)):
        if not any(small & mask == small for small in kept):
            kept.append(mask)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a trivial answer scores on average: share of puzzles solved and share of empty cells right."""

    name: str
    exact: float
    cell: float


def constant(puzzle: str, digit: str) -> str:
    """Fill every empty cell with ``digit``."""
    return puzzle.replace("0", digit)


def row_fill(puzzle: str, rng: random.Random) -> str:
    """Fill each row with the digits it lacks, in random order."""
    filled = []
    for row in _rows(puzzle):
        missing = [digit for digit in "1234" if digit not in row]
        rng.shuffle(missing)
        filled.append("".join(missing.pop() if cell == "0" else cell for cell in row))
    return "".join(filled)


def row_fill_expected(puzzle: str, solution: str) -> tuple[float, float]:
    """Return the exact expectation of ``row_fill``: (chance to solve, expected share of empty cells right)."""
    missing = [row.count("0") for row in _rows(puzzle)]
    if not sum(missing):
        return 1.0, 1.0
    fillings = math.prod(math.factorial(count) for count in missing)
    return len(completions(puzzle)) / fillings, sum(count > 0 for count in missing) / sum(missing)


def baselines(pairs: Iterable[tuple[str, str]]) -> list[Baseline]:
    """Return the trivial baselines of a set of (puzzle, stored solution) pairs, cells averaged per puzzle."""
    pairs = list(pairs)
    if not pairs:
        raise UsageError("baselines need at least one puzzle", seen="an empty set")
    digits = {digit: _average(pairs, [constant(puzzle, digit) for puzzle, _ in pairs]) for digit in "1234"}
    best = max(digits, key=lambda digit: digits[digit][1])
    fills = [row_fill_expected(puzzle, solution) for puzzle, solution in pairs]
    exact, cell = (sum(part) / len(pairs) for part in zip(*fills, strict=True))
    copied = _average(pairs, [puzzle for puzzle, _ in pairs])
    return [
        Baseline(f"constant {best}", *digits[best]),
        Baseline("copy", *copied),
        Baseline("row-fill", exact, cell),
    ]


def _average(pairs: Sequence[tuple[str, str]], answers: Sequence[str]) -> tuple[float, float]:
    exact = cell = 0.0
    for (puzzle, solution), grid in zip(pairs, answers, strict=True):
        empty = [index for index in range(CELLS) if puzzle[index] == "0"]
        exact += is_grid(grid)
        cell += sum(grid[i] == solution[i] for i in empty) / len(empty) if empty else 1.0
    return exact / len(pairs), cell / len(pairs)


def _rows(cells: str) -> list[str]:
    return [cells[start : start + 4] for start in range(0, CELLS, 4)]
