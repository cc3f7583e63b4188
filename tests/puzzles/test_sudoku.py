from __future__ import annotations

import itertools
import random

import pytest

from dare_eval.errors import UsageError
from dare_eval.puzzles import sudoku


def test_there_are_288_grids_and_each_is_valid():
    grids = sudoku.grids()
    assert len(grids) == len(set(grids)) == 288
    for grid in grids:
        rows = [grid[start : start + 4] for start in range(0, 16, 4)]
        columns = ["".join(column) for column in zip(*rows, strict=True)]
        corners = [rows[r][c : c + 2] + rows[r + 1][c : c + 2] for r, c in itertools.product((0, 2), repeat=2)]
        assert all(sorted(unit) == list("1234") for unit in rows + columns + corners)


def test_splits_share_no_solution_and_cover_all_grids():
    splits = sudoku.split_solutions()
    assert {name: len(grids) for name, grids in splits.items()} == {"train": 216, "validation": 24, "test": 48}
    assert len(set().union(*splits.values())) == 288


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_puzzles_have_exactly_one_completion_and_are_distinct(split):
    puzzles = sudoku.generate(split, 300, seed=3)
    assert len({item.puzzle for item in puzzles}) == 300
    owned = set(sudoku.split_solutions()[split])
    for item in puzzles:
        assert sudoku.completions(item.puzzle) == [item.solution]
        assert item.solution in owned
        assert 6 <= item.blanks <= 10


def test_blank_counts_are_about_equally_frequent():
    puzzles = sudoku.generate("train", 5000)
    counts = [sum(item.blanks == blanks for item in puzzles) for blanks in range(6, 11)]
    assert min(counts) > 900


def test_generation_repeats_with_its_seed_only():
    assert sudoku.generate("test", 50, seed=1) == sudoku.generate("test", 50, seed=1)
    assert sudoku.generate("test", 50, seed=1) != sudoku.generate("test", 50, seed=2)


def test_generation_leaves_the_global_generator_alone():
    random.seed(5)
    expected = random.random()
    random.seed(5)
    sudoku.generate("test", 5)
    assert random.random() == expected


def test_every_puzzle_of_a_kind_can_be_drawn_and_not_one_more():
    counts = [len(sudoku._forcing_patterns(sudoku._canonical(grid), 12)) for grid in sudoku.split_solutions()["test"]]
    puzzles = sudoku.generate("test", sum(counts), blanks=(12, 12))
    assert len(set(puzzles)) == sum(counts)
    with pytest.raises(UsageError, match="only"):
        sudoku.generate("test", sum(counts) + 1, blanks=(12, 12))


def test_forcing_patterns_agree_with_the_definition():
    grid = sudoku.grids()[17]
    forcing = set(sudoku._forcing_patterns(sudoku._canonical(grid), 9).tolist())
    rng = random.Random(0)
    for _ in range(200):
        givens = sum(1 << cell for cell in rng.sample(range(16), 7))
        puzzle = sudoku._blanked(grid, givens)
        assert (givens in forcing) == (len(sudoku.completions(puzzle)) == 1)


def test_an_unknown_split_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'test'"):
        sudoku.generate("tst", 1)


def test_row_fill_keeps_givens_and_its_expectation_is_its_average():
    item = sudoku.generate("test", 1, seed=9)[0]
    exact, cell = sudoku.row_fill_expected(item.puzzle, item.solution)
    rng = random.Random(1)
    grids = [sudoku.row_fill(item.puzzle, rng) for _ in range(4000)]
    assert all(sudoku.keeps_givens(item.puzzle, grid) for grid in grids)
    empty = [index for index, given in enumerate(item.puzzle) if given == "0"]
    seen = sum(sum(grid[i] == item.solution[i] for i in empty) / len(empty) for grid in grids) / len(grids)
    assert seen == pytest.approx(cell, abs=0.03)
    assert sum(sudoku.is_grid(grid) for grid in grids) / len(grids) == pytest.approx(exact, abs=0.03)


def test_baselines_of_a_set():
    pairs = [(item.puzzle, item.solution) for item in sudoku.generate("test", 400)]
    constant, copy, fill = sudoku.baselines(pairs)
    assert constant.name.startswith("constant ") and 0.2 < constant.cell < 0.35
    assert (copy.exact, copy.cell) == (0.0, 0.0)
    assert 0.4 < fill.cell < 0.6 and 0 < fill.exact < 0.2
    assert sudoku.baselines([("1234341221434321",) * 2])[1].exact == 1.0


def test_row_fill_on_the_published_puzzles(dare_data):
    import json

    rows = [json.loads(line) for line in (dare_data / "planning" / "sudoku_test.jsonl").read_text().splitlines()]
    published = [(row["puzzle"], row["solution"]) for row in rows if row["id"].startswith("sudoku4-d1-")]
    assert sudoku.baselines(published)[2].cell == pytest.approx(0.467, abs=0.02)
    assert all(len(sudoku.completions(row["puzzle"])) == row["n_solutions"] for row in rows[:200])
