"""Every stock benchmark that the data folder can feed builds and runs three items; the others say what is missing."""

from __future__ import annotations

import json

import pytest

from dare_eval.presets.catalog import RunText, catalog
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
ABSENT = {"math", "winogrande", "winogrande_ll"}
"""The data folder of the tests holds no rows of these."""
KNOWS = """
models = [dict(type="tests.benchmarks_suite.fakes.GoldModel", abbr="gold", path="none", batch_size=64)]
"""
NO_REFERENCE = {"IFEval", "humaneval_plus", "lcb_code_generation", "lcb_code_execution", "lcb_test_output"}
"""Data sets whose rows hold no right reply."""


@pytest.fixture
def fed(stocked, dare_data):
    stocked.env |= {"DARE_DATA": str(dare_data), "DARE_LIMIT": "3", "HF_DATASETS_OFFLINE": "1"}
    return stocked


def test_every_generating_benchmark_runs_three_items_and_gold_answers_are_right(fed):
    names = [name for name in [*catalog()["suites"]["all"], "countdown_d1", "sudoku_d1"] if name not in ABSENT]
    path = fed.place / "stock.py"
    path.write_text(str(RunText(["llada-8b-instruct"], names, "unused")) + KNOWS)
    done = fed.run(path)
    assert done.code == 0, done.text
    rows = {row["dataset"]: row for row in done.report if row["metric"] in ("accuracy", "pass@1", "exact", "strict")}
    planned = json.loads((done.run / "manifest.json").read_text())["datasets"]
    assert len(planned) > 240
    for entry in planned:
        assert entry["subset"] == "first 3"
        assert 0 < entry["expected"] <= 24, entry
        assert rows[entry["name"]]["n"] == entry["expected"], entry["name"]
        if entry["name"] not in NO_REFERENCE:
            assert rows[entry["name"]]["value"] == 100, entry["name"]
    averages = {row["dataset"] for row in done.report if row["metric"] == "average"}
    assert averages == {"mmlu", "mmlu_pro", "ceval", "cmmlu", "bbh", "olympiadbench"}
    assert "subset: first 3" in " ".join(done.out.split())


def test_repeats_of_aime_are_reported_as_such(fed):
    path = fed.place / "aime.py"
    path.write_text(str(RunText(["llada-8b-instruct"], ["aime2025"], "unused")) + KNOWS)
    done = fed.run(path)
    assert done.code == 0, done.text
    rows = {row["metric"]: row for row in done.report}
    assert rows["accuracy"]["n"] == 24
    assert "mean of 8 answers per question" in rows["accuracy"]["labels"]
    assert rows["pass@8"]["n"] == rows["maj@8"]["n"] == 3
    records = done.records("gold", "aime2025-repeat8")
    assert {(r.get("index"), r.get("repeat", 0)) for r in records} == {(i, i // 3) for i in range(24)}
    assert len({r["item_id"] for r in records}) == 24
    assert len({r.get("question_id", r["item_id"]) for r in records}) == 3


def test_every_likelihood_benchmark_runs_three_items(fed):
    names = [name for name in catalog()["suites"]["likelihood"] if name not in ABSENT]
    parts = [f"*{name}[:2]" for name in names]
    path = fed.place / "likelihood.py"
    text = str(RunText(["llada-8b-base"], names, "unused", changes={"likelihood": {"mc_num": 8}}))
    path.write_text(f"{text}\ndatasets = [{', '.join(parts)}]\n")
    done = fed.run(path)
    assert done.code == 0, done.text
    for row in done.report:
        if row["metric"] == "accuracy":
            assert row["n"] == row["expected"] == 3
            assert row["decode_spec"]["task"] == "likelihood"
            assert row["decode_spec"]["mc_num"] == 8
            assert row["nfe"] >= 2
            assert row["low"] < row["high"]
    assert {row["dataset"] for row in done.report if row["metric"] == "average"} == {
        "mmlu (likelihood)", "ceval (likelihood)", "cmmlu (likelihood)",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_a_benchmark_without_rows_is_named_with_the_remedy(fed, name):
    done = fed.run("data", "check", ROOT / "configs" / "eval" / f"llada_{name}.py", program="dare-eval")
    assert done.code == 4
    assert "missing" in done.text or "broken" in done.text
    assert name.removesuffix("_ll") in done.text
