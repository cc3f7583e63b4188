"""``dare-eval sweep`` and ``dare-eval plan`` as real command lines on the shipped models."""

from __future__ import annotations

import json

import pytest

from dare_eval.records.store import Store
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
CONFIGS = ROOT / "configs" / "eval"


def sweep(workplace, *arguments):
    db = f"sqlite:///{workplace.place / 'dare.db'}"
    where = ["-w", workplace.place / "runs", "--db", db]
    return workplace.run("sweep", *arguments, *where, program="dare-eval"), db


def test_every_applicable_policy_and_cache_runs_and_enters_the_store(workplace):
    grid = ["--policy", "all", "--cache", "all", "--steps", "4", "--limit", "4", "--json"]
    done, db = sweep(workplace, "tiny-sudoku", CONFIGS / "tiny_sudoku.py", *grid)
    assert done.code == 0, done.err[-3000:]
    found = json.loads(done.out)
    ran = {(p["decode_spec"]["policy"], p["decode_spec"]["cache"]) for p in found["points"]}
    assert len(ran) == len(found["points"]) == 13 * 3 - 2  # suffix keeps no cache
    assert all(p["n"] == 4 and p["low"] is not None and p["nfe"] >= 1 for p in found["points"])
    assert any(p["pareto"] for p in found["points"])
    reasons = {one["label"]: one["reason"] for one in found["skipped"]}
    assert len(reasons) == 13 + 2
    assert "cache 'block' does not work for a bidirectional network" in reasons["policy=quota,cache=block,steps=4"]
    results = Store(db).results()
    assert len({row.spec_digest for row in results}) == len(ran)
    assert {row.evaluation_id for row in results} == {found["evaluation"]}


def test_quality_of_list_operations_falls_with_tokens_per_forward(workplace):
    grid = ["--steps", "6,3,1", "--limit", "200"]
    done, _ = sweep(workplace, "tiny-list-ops", CONFIGS / "tiny_list_ops.py", *grid)
    assert done.code == 0, done.err[-3000:]
    rows = sorted((r for r in done.report if r["metric"] == "exact"), key=lambda row: row["nfe"])
    assert [row["nfe"] for row in rows] == [1, 3, 6]
    assert rows[0]["high"] < rows[1]["value"] and rows[1]["high"] < rows[2]["low"]
    assert "Settings by forwards" in done.out and "AUP" in done.out and "Results (percent" not in done.out


def test_templates_are_asked_side_by_side_and_told_apart(workplace):
    grid = ["--steps", "4,2", "--templates", "3", "--limit", "2", "--json"]
    done, _ = sweep(workplace, "tiny-sudoku", CONFIGS / "tiny_humaneval.py", *grid)
    assert done.code == 0, done.err[-3000:]
    found = json.loads(done.out)
    names = {point["dataset"]: point["template"] for point in found["points"]}
    assert names == {f"openai_humaneval@t{k}": f"t{k}" for k in (1, 2, 3)}
    assert [(row["setting"], row["templates"]) for row in found["templates"]] == [("steps=2", 3), ("steps=4", 3)]
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert len({entry["prompt_hash"] for entry in manifest["datasets"]}) == 3
    assert {entry["template"] for entry in manifest["datasets"]} == {None, "t2", "t3"}
    prompts = {done.records("tiny-sudoku@steps=2", name)[0]["prompt_sha"] for name in names}
    assert len(prompts) == 3
    assert len({done.records("tiny-sudoku@steps=2", name)[0]["item_id"] for name in names}) == 1


def test_template_of_a_config_changes_prompt_and_manifest(workplace):
    text = (CONFIGS / "tiny_humaneval.py").read_text()
    text = text.replace("._base", "dare_eval.configs.eval._base").replace("..models", "dare_eval.configs.models")
    config = workplace.place / "worded.py"
    config.write_text(text + "template = 3\n")
    workplace.env["DARE_LIMIT"] = "1"
    done = workplace.run(config)
    assert done.code == 0, done.err[-3000:]
    [entry] = json.loads((done.run / "manifest.json").read_text())["datasets"]
    assert entry["template"] == "t3"
    again = workplace.run("run", config, "--template", "9", "--limit", "1", program="dare-eval", folder="other")
    assert again.code == 2 and "has no template 9" in again.err


def test_sweep_refuses_what_cannot_work_before_anything_runs(workplace):
    done, _ = sweep(workplace, "tiny-sudoku", CONFIGS / "tiny_sudoku.py", "--steps", "17,99")
    assert done.code == 2 and "no setting of this sweep can work" in done.err and "steps = 16" in done.err
    done, _ = sweep(workplace, "tiny-sudoku", CONFIGS / "tiny_sudoku.py", "--steps", "4", "--templates", "2")
    assert done.code == 2 and "has no template 2" in done.err
    done, _ = sweep(workplace, "tiny-sudok", CONFIGS / "tiny_sudoku.py", "--steps", "4")
    assert done.code == 4 and "did you mean 'tiny-sudoku'" in done.err
    assert not list((workplace.place / "runs").glob("20*"))


def plan(workplace, *arguments):
    return workplace.run("plan", *arguments, program="dare-eval")


def test_plan_gives_ranges_for_a_model_that_is_not_here_and_a_probe_for_one_that_is(workplace):
    done = plan(workplace, CONFIGS / "llada_humaneval.py", "--device", "h100", "--json")
    assert done.code == 0, done.err[-2000:]
    [row] = json.loads(done.out)["rows"]
    assert row["items"] == 164 and row["gen_length"] == 512 and row["nfe"] == {"low": 512, "high": 512}
    assert 0.05 < row["hours"]["low"] < row["hours"]["high"] < 20
    assert 14 < row["memory_gib"]["low"] < row["memory_gib"]["high"] < 80
    assert "checkpoint not here" in row["notes"][0]
    done = plan(workplace, CONFIGS / "tiny_planning.py", "--probe", "--json", "--limit", "50")
    assert done.code == 0, done.err[-2000:]
    rows = json.loads(done.out)["rows"]
    assert [(row["dataset"], row["items"]) for row in rows] == [("sudoku4", 50), ("countdown3", 50)]
    assert all("measured on 3 items" in row["notes"][-1] and row["hours"]["low"] > 0 for row in rows)


def test_plan_flags_impossible_specs_contexts_that_do_not_fit_and_missing_data(workplace):
    done = plan(workplace, CONFIGS / "llada_humaneval.py", "--device", "rtx4090", "--mem-gib", "12")
    assert done.code == 2 and "does not fit rtx4090" in done.out
    text = (CONFIGS / "tiny_sudoku.py").read_text().replace("from ..", "from dare_eval.configs.")
    config = workplace.place / "odd.py"
    config.write_text(
        text.replace("from ._base", "from dare_eval.configs.eval._base")
        + 'models = [dict(models[0], abbr="a", decoding=dict(gen_length=16, block_length=16, steps=99)),\n'
        + '          dict(models[0], abbr="b", decoding=dict(gen_length=48, block_length=16))]\n'
    )
    done = plan(workplace, config, "--json")
    assert done.code == 2
    a, b = json.loads(done.out)["rows"]
    assert "steps 99 cannot be spread" in a["impossible"][0] and "steps = 16" in a["impossible"][0]
    assert "400 prompts" not in b["impossible"][0] and "do not fit: longest 19, room 16" in b["impossible"][0]
    done = plan(workplace, CONFIGS / "llada_gsm8k.py", "--device", "h100")
    assert done.code == 4 and "! llada-8b-instruct on gsm8k: data: " in done.out
