"""Quality against cost, and algorithms from one base."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dare_eval.records.index import index_folders
from dare_eval.records.significance import paired_binary, paired_bootstrap
from dare_eval.records.store import Store
from dare_eval.records.vectors import read_vectors
from dare_eval.report.aup import Setting, aup, aup_interval
from leaderboard.data.algorithms import BASE, bases, compare_algorithms, decodings, ledger, members
from leaderboard.data.board import load_board
from leaderboard.data.curves import names, points, read_curve
from leaderboard.data.pareto import models_of, stem, strategies, undominated
from leaderboard.data.source import refresh
from tests.leaderboard.stores import SPEC, items, write_checkpoint, write_run

TOY = ("toy", "accuracy")


def columns(cell):
    return read_vectors(Path(cell.folder), cell.stamp, cell.model, cell.dataset)


def test_a_sweep_is_one_curve_with_the_area_of_the_reference(board):
    found = strategies(board("many"), TOY)
    llada = next(one for one in found if one.name == "llada-8b, quota")
    assert [cell.nfe for cell in llada.cells] == [4, 8, 16]
    best = max(cell.value for one in found for cell in one.cells)
    settings = [
        Setting(c["correct"].tolist(), c["tokens"].tolist(), c["nfe"].tolist()) for c in map(columns, llada.cells)
    ]
    expected = aup([(cell.tpf, cell.value) for cell in llada.cells], best)
    assert llada.area.value == pytest.approx(expected.value) and llada.area.kept == expected.kept
    assert (llada.area.low, llada.area.high) == aup_interval(settings, best)
    assert strategies(board("many"), TOY)[0].area == found[0].area, "kept areas are the same"


def test_strategies_of_one_model_are_named_by_what_differs(place, tmp_path, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    draw = np.random.default_rng(0)
    for policy, cache in (("quota", "none"), ("quota", "dual"), ("margin", "none")):
        for steps in (4, 8):
            spec = SPEC | {"policy": policy, "cache": cache, "steps": steps}
            records = items([bool(x) for x in draw.random(30) < 0.5], nfe=steps)
            place, model = f"{policy}-{cache}-{steps}", f"m-8b@{policy},{cache},{steps}"
            write_run(tmp_path / "runs", place, {"toy": records}, model=model, spec=spec, weight_hash="one")
    url = f"sqlite:///{tmp_path}/x.db"
    index_folders(Store(url), tmp_path / "runs")
    found = load_board(url, Store(url).version())
    assert [one.name for one in strategies(found, TOY)] == [
        "m-8b, margin, cache none", "m-8b, quota, cache dual", "m-8b, quota, cache none"
    ]  # fmt: skip
    assert stem(["alpha", "beta"]) == "alpha" and stem(["same"]) == "same"


def test_left_to_right_models_come_last_and_equal_names_are_told_apart(board):
    found = board("many")
    assert strategies(found, TOY)[-1].model == "qwen"
    assert len(set(models_of(found, TOY).values())) == len(models_of(found, TOY))
    only = [key for key, name in models_of(found, TOY).items() if name == "qwen"]
    assert [one.model for one in strategies(found, TOY, only)] == ["qwen"]


def test_undominated_looks_at_forwards_downward_and_at_speed_upward(board):
    cells = [cell for one in strategies(board("many"), TOY) for cell in one.cells]
    for field, better in (("nfe", lambda a, b: a <= b), ("tps", lambda a, b: a >= b)):
        known = [cell for cell in cells if getattr(cell, field)]
        marked = undominated(cells, field)
        for cell in known:
            beaten = any(
                better(getattr(o, field), getattr(cell, field)) and o.value >= cell.value
                and (getattr(o, field), o.value) != (getattr(cell, field), cell.value)
                for o in known
            )  # fmt: skip
            assert (cell.id in marked) == (not beaten)


def test_seeds_are_pooled_item_by_item_and_every_pair_is_tested(board):
    found = board("many")
    [base] = bases(found)
    cells = members(found, base)
    digest = decodings(cells, TOY)[0]
    compared = compare_algorithms(found, base, TOY, digest)
    rows = {row.algorithm: row for row in compared.rows}
    assert list(rows) == [BASE, "d1", "spg"] and len(rows["d1"].cells) == 2 and compared.left_out == ()
    assert rows["d1"].value == pytest.approx(np.mean(rows["d1"].seed_values))
    tables = {name: [columns(cell)["correct"].astype(float) for cell in row.cells] for name, row in rows.items()}
    means = {name: np.mean(values, axis=0) for name, values in tables.items()}
    duels = {(duel.a, duel.b): duel for duel in compared.duels}
    expected = paired_bootstrap(means[BASE], means["d1"])
    assert duels[BASE, "d1"].test.p == pytest.approx(expected.p) and duels[BASE, "d1"].test.delta == expected.delta
    assert duels[BASE, "d1"].p_holm >= duels[BASE, "d1"].test.p and duels[BASE, "d1"].winner == "d1"
    assert len(duels) == 3


def test_algorithms_with_one_seed_each_use_the_exact_test(tmp_path, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    from dare_eval.records.provenance import weight_hash

    a, b = [i % 3 == 0 for i in range(40)], [i % 3 != 1 for i in range(40)]
    write_run(tmp_path / "runs", "base", {"toy": items(a)}, model="base")
    model = write_checkpoint(tmp_path / "runs", "x", "d1", 1)
    write_run(tmp_path / "runs", "x", {"toy": items(b)}, model="x", weight_hash=weight_hash(model))
    other = write_checkpoint(tmp_path / "runs", "y", "d1", 1, lr=5e-3)
    write_run(tmp_path / "runs", "y", {"toy": items(b)}, model="y", weight_hash=weight_hash(other))
    url = f"sqlite:///{tmp_path}/x.db"
    index_folders(Store(url), tmp_path / "runs")
    found = load_board(url, Store(url).version())
    [base] = bases(found)
    compared = compare_algorithms(found, base, TOY, decodings(members(found, base), TOY)[0])
    assert [row.algorithm for row in compared.rows] == [BASE, "d1: x", "d1: y"], "other settings are no other seed"
    assert compared.duels[0].test == paired_binary(a, b)


def test_the_ledger_marks_what_was_unequal_and_what_nobody_measured(board):
    found = board("many")
    [base] = bases(found)
    digest = decodings(members(found, base), TOY)[0]
    lines = {line.name: line for line in ledger(compare_algorithms(found, base, TOY, digest).rows)}
    assert set(lines) == {"prompts", "optimizer_steps", "wall_s"}
    assert lines["optimizer_steps"].values == (10.0, 20.0) and lines["optimizer_steps"].unequal
    assert not lines["prompts"].unequal


def test_curves_are_read_with_their_damaged_lines_counted(tmp_path):
    folder = tmp_path / "train"
    (folder / "model").mkdir(parents=True)
    lines = [json.dumps({"step": n, "loss": 1.0, "note": "x", "flag": True}) for n in range(1000)]
    (folder / "metrics.jsonl").write_text("\n".join([*lines, "{", "[1]", "NaN", ""]))
    run = read_curve("a", folder / "model")
    assert run.damaged == 3 and names([run]) == ["loss"]
    drawn = points(run, "step", "loss")
    assert len(drawn) <= 400 and drawn[-1] == (999, 1.0) and drawn == sorted(drawn)
    assert read_curve("b", tmp_path / "else") is None and read_curve("c", None) is None


def test_a_run_whose_folder_is_gone_is_named_by_the_comparison(board, tmp_path):
    url = f"sqlite:///{tmp_path}/y.db"
    gone = write_run(tmp_path / "runs", "base", {"toy": items([True, False])}, model="base")
    store = Store(url)
    store.register_evaluation(gone)
    for path in sorted(gone.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    refresh(url)
    found = load_board(url, store.version())
    assert strategies(found, TOY)[0].cells[0].value == 50.0


def test_names_that_look_like_numbers_stay_names():
    from leaderboard.plots import bars_figure

    figure = bars_figure([("2026", 1.0, 0.5, 1.5), ("1e3", 2.0, 1.5, 2.5)], "score, %")
    assert figure.layout.yaxis.type == "category" and list(figure.data[0].y) == ["1e3", "2026"]
