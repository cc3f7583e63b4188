"""Cases of category ``caching``: scenarios on the shipped Sudoku model, each with a test that carries its id."""

from __future__ import annotations

import json

import pytest

from tests.cases.case_lines import lines
from tests.runtime.harness import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
SCENARIOS = ("C180", "C182", "C183", "C185")
CASES = {line["id"]: line for line in lines("caching")}


def expected(name: str) -> dict:
    """Return what the case asks for; skip it where no case file holds it."""
    if name not in CASES:
        pytest.skip(f"{name} is in none of the case folders")
    return CASES[name]["expected"]


def sudoku(workplace, *, decoding: dict, dataset: dict | None = None, evaluator: dict | None = None):
    """Write a config of ten puzzles for the shipped model."""
    base = (ROOT / "configs" / "datasets" / "planning" / "sudoku4_gen.py").read_text()
    extra = f"""
models = [dict(type="dare_eval.models.llada.LLaDAModel", abbr="tiny", path="tiny-sudoku", decoding={decoding!r})]
models[0]["batch_size"] = 4
datasets = [dict(sudoku4_datasets[0], size=10, **{dataset or {}!r})]
datasets[0]["eval_cfg"] = dict(evaluator=dict(sudoku4_datasets[0]["eval_cfg"]["evaluator"], **{evaluator or {}!r}))
"""
    return workplace.config(base + extra)


def items(done) -> list[dict]:
    return [json.loads(line) for line in (done.run / "predictions/tiny/sudoku4.items.jsonl").read_text().splitlines()]


def test_every_caching_case_has_a_test_here():
    assert set(CASES) <= set(SCENARIOS), "a scenario without a test of its own"


def test_C180_any_decode_setting_is_part_of_the_key(workplace):
    want = expected("C180")
    shape = {"gen_length": 16, "block_length": 16}
    first = workplace.run(sudoku(workplace, decoding={**shape, "steps": 16}))
    assert first.code == 0, first.text
    decoding = {**shape, "policy": "threshold", "threshold": 0.9}
    second = workplace.run(sudoku(workplace, decoding=decoding), "-r")
    assert second.code == 0, second.text
    assert second.run == first.run
    reused = {r["fingerprint"] for r in items(second)} & {
        json.loads(line)["fingerprint"]
        for line in (first.run / "predictions/tiny/sudoku4.items.jsonl.stale").read_text().splitlines()
    }
    assert len(reused) == want["predictions_reused"]
    assert "decoding.threshold: null -> 0.9" in second.text
    assert second.row("exact")["decode_spec"]["threshold"] == 0.9


def test_C182_only_the_evaluator_changed(workplace):
    want = expected("C182")
    decoding = {"gen_length": 16, "block_length": 16, "steps": 8}
    first = workplace.run(sudoku(workplace, decoding=decoding))
    before = items(first)
    second = workplace.run(sudoku(workplace, decoding=decoding, evaluator={"presets": ["d1_pad"]}), "-r")
    assert second.code == 0, second.text
    assert items(second) == before
    rescored = [r for r in second.records("tiny", "sudoku4") if "presets" in r["detail"]]
    assert (len(before), len(rescored)) == (want["predictions_reused"], want["rescored"])
    assert second.row("cell_d1_pad")["n"] == 10


def test_C183_repeats_do_not_overwrite_one_another(workplace):
    want = expected("C183")["distinct_cache_entries_per_item"]
    decoding = {"gen_length": 16, "block_length": 16, "steps": 2, "temperature": 1.0}
    first = workplace.run(sudoku(workplace, decoding=decoding, dataset={"n": want, "k": want}))
    assert first.code == 0, first.text
    before = items(first)
    entries: dict[str, set[str]] = {}
    for record in before:
        entries.setdefault(record.get("question_id", record["item_id"]), set()).add(record["item_id"])
    assert {len(found) for found in entries.values()} == {want}
    assert len({record["response"] for record in before[::10]}) > 1, "each repeat has a seed of its own"
    again = workplace.run(sudoku(workplace, decoding=decoding, dataset={"n": want, "k": want}), "-r")
    assert items(again) == before


def test_C185_predictions_cut_in_half(workplace):
    want = expected("C185")
    decoding = {"gen_length": 16, "block_length": 16, "steps": 8}
    first = workplace.run(sudoku(workplace, decoding=decoding))
    folder = first.run / "predictions" / "tiny"
    whole = json.loads((folder / "sudoku4.json").read_text())
    (folder / "sudoku4.items.jsonl").unlink()
    text = (folder / "sudoku4.json").read_text()
    (folder / "sudoku4.json").write_text(text[: len(text) // 2])
    (first.run / "results" / "tiny" / "sudoku4.json").unlink()
    second = workplace.run(sudoku(workplace, decoding=decoding), "-r")
    assert second.code == 0, second.text
    assert ("damaged" in second.text) is want["detected"]
    kept = [record for record in items(second) if "batch_rows" not in record]
    assert (len(kept) >= 4) is want["whole_items_kept"]
    assert len(items(second)) == 10, "each item once: kept or decoded again"
    again = json.loads((folder / "sudoku4.json").read_text())
    assert [entry["prediction"] for entry in again.values()] == [entry["prediction"] for entry in whole.values()]
