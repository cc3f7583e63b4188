from __future__ import annotations

import dataclasses

import pytest

from dare_eval.records.noise import Floor
from dare_eval.records.significance import PairedTest
from leaderboard.data import overview as view
from leaderboard.data.board import AUTOREGRESSIVE, DIFFUSION, UNKNOWN, Board, columns_of, kind_of
from leaderboard.data.difference import differing, summary
from leaderboard.data.overview import Filters, overview, select


def test_cells_carry_everything_a_score_may_not_be_shown_without(board):
    [cell] = board("one").cells
    assert cell.low < cell.value < cell.high and (cell.n, cell.expected, cell.nfe) == (20, 20, 16)
    assert cell.tps == 20 and cell.spec["steps"] == 16 and cell.policy == "quota" and cell.kind == DIFFUSION
    assert cell.complete and cell.labels == () and cell.measures == "verdict"


def test_left_to_right_models_are_told_from_diffusion_and_from_unknown():
    assert kind_of("llada2", {}) == DIFFUSION and kind_of("", {"policy": "threshold"}) == DIFFUSION
    assert kind_of("qwen3", {"gen_length": 8}) == AUTOREGRESSIVE and kind_of("", {}) == UNKNOWN


def test_ties_are_those_of_the_paired_tests(board):
    found = board("many")
    shown = overview(found, Filters(benchmarks=("toy",)))
    toy = [cell for cell in found.cells if cell.column == ("toy", "accuracy")]
    best = max((c for c in toy if shown.ties[c.id].pool == 0), key=lambda c: c.value)
    for cell in toy:
        tie, test = shown.ties[cell.id], found.test(best.id, cell.id)
        if cell.id != best.id and tie.pool == 0 and tie.group > 1:
            assert test.p < 0.05, "told apart from the best"
        if tie.pool:
            assert test.method.startswith("refused: ")
    templated = next(cell for cell in toy if cell.model == "templated")
    assert templated.value == max(cell.value for cell in toy), "another prompt, so it leads a pool of its own"
    assert shown.ties[templated.id].pool != shown.ties[next(c for c in toy if c.model == "base").id].pool


def test_filters_combine(board):
    found = board("many")
    assert {c.family for c in select(found.cells, Filters(families=("dream",)))} == {"dream"}
    assert {c.run for c in select(found.cells, Filters(text="DREAM-4"))} == {"dream-4/20260101_000000"}
    assert {c.policy for c in select(found.cells, Filters(policies=("quota",)))} == {"quota"}
    assert select(found.cells, Filters(families=("dream",), text="llada")) == []
    assert {c.metric for c in select(found.cells, Filters()) if c.dataset == "graded"} == {"accuracy", "cell"}
    assert columns_of(found.cells) == [("graded", "accuracy"), ("toy", "accuracy")]
    assert columns_of(found.cells, all_metrics=True)[1] == ("graded", "cell")


def test_incomplete_results_can_be_left_out_and_repeats_reduced_to_the_newest(board):
    found = board("one")
    cell = found.cells[0]
    part = dataclasses.replace(cell, id=2, complete=False, started="2025-01-01")
    assert select([cell, part], Filters(complete_only=True)) == [cell]
    assert select([cell, part], Filters(newest_only=True)) == [cell]
    unknown = [dataclasses.replace(one, weight_hash=None, evaluation=one.id) for one in (cell, part)]
    assert len(select(unknown, Filters(newest_only=True))) == 2


def test_one_row_per_family_holds_its_best_scores(board):
    found = board("many")
    shown = overview(found, Filters(best_of_family=True))
    rows = {row.name: row for row in shown.rows}
    assert set(rows) == {"dream", "llada", "qwen3"} and all(row.evaluation is None for row in rows.values())
    for family, row in rows.items():
        for column, cell in row.cells.items():
            rivals = [c for c in found.cells if (c.family, c.column) == (family, column)]
            assert cell.value == max(c.value for c in rivals if shown.ties[c.id].pool == 0)
    assert rows["llada"].cells["toy", "accuracy"].model != "templated", "the best of another question is no best"


def test_pages_hold_all_rows_once_and_a_page_beyond_the_last_is_the_last(board, monkeypatch):
    monkeypatch.setattr(view, "PAGE_ROWS", 4)
    found = board("many")
    first = overview(found, Filters())
    rows = [row for page in range(1, first.pages + 1) for row in overview(found, Filters(), page).rows]
    assert len(rows) == first.total == len({(row.evaluation, row.model) for row in rows}) and first.pages == 4
    assert overview(found, Filters(), 99).page == first.pages and overview(found, Filters(), -3).page == 1


def test_columns_say_what_difference_their_items_can_show(board):
    [column] = overview(board("one"), Filters()).columns
    assert column.n == 20 and column.detectable == pytest.approx(44.3, abs=0.1)


def test_the_noise_floor_is_that_of_the_models_compared_else_the_largest(board):
    def floor(weights, rate):
        return Floor(model="m", dataset="toy", weight_hash=weights, n=9, flip_rate=rate, low=0, high=9, variations=[])

    found = Board((), {}, (), {}, (), (floor("a", 1.0), floor("b", 3.0)), {})
    assert found.floor("toy", {"a"}) == 1.0 and found.floor("toy", {"c"}) == 3.0 and found.floor("else", {"a"}) is None


def test_a_difference_is_said_with_its_interval_or_why_there_is_none(board):
    found = board("many")
    cells = {cell.model: cell for cell in found.cells if cell.column == ("toy", "accuracy")}
    said = summary(found, cells["base"], cells["d1-1"])
    test = found.test(cells["base"].id, cells["d1-1"].id)
    assert f"{100 * test.delta:+.1f} points" in said and said.endswith("second better")
    assert summary(found, cells["d1-1"], cells["base"]).endswith("first better")
    assert summary(found, cells["base"], cells["templated"]).startswith("not comparable: prompt (prompt_hash)")
    assert summary(found, cells["base"], dataclasses.replace(cells["d1-1"], id=-1)).startswith("no paired test")
    floor = Floor(model="base", dataset="toy", weight_hash=None, n=9, flip_rate=99.0, low=0, high=9, variations=[])
    loud = dataclasses.replace(found, floors=(floor,))
    assert summary(loud, cells["base"], cells["d1-1"]).endswith("within the noise floor of 99.0 % of items")
    assert differing(cells["base"], cells["d1-1"]) == []
    slow, fast = (c for c in found.cells if c.model == "llada-8b" and c.dataset == "toy" and c.nfe in (4, 16))
    assert any("steps" in reason for reason in differing(slow, fast))


def test_a_kept_test_answers_in_both_directions(board):
    test = PairedTest(0.1, 0.0, 0.2, 0.04, 10, 3, 2, "mcnemar-exact")
    found = Board((), {}, (), {(1, 2): test}, (), (), {})
    assert found.test(1, 2) == test and found.test(2, 1).delta == -0.1 and found.test(1, 3) is None
    assert found.p(2, 1) == 0.04 and found.p(1, 3) is None
