"""Folders as OpenCompass 0.5.4 writes them without any class of ours."""

import json

import pytest

from dare_eval.records.compare import compare_runs
from dare_eval.records.foreign import foreign_items, foreign_results, foreign_row
from dare_eval.records.predictions import prediction_files, read_predictions
from dare_eval.records.runs import load_run
from dare_eval.records.stats import clustered, paired_binary, wilson
from dare_eval.records.store import Store

CONFIG = """\
datasets=[
    dict(abbr='toy', type='a.Toy', eval_cfg=dict(evaluator=dict(type='x.AccEvaluator')),
        infer_cfg=dict(inferencer=dict(max_out_len=5, type='y.GenInferencer'))),
    ]
models=[
    dict(abbr='echo', batch_size=4, max_out_len=7, path='some/where', type='a.Echo', hook=lambda: print('never run')),
    ]
"""


def put(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=4))


def predictions(answers, start=0):
    turn = [{"role": "HUMAN", "prompt": "Q"}]
    return {
        str(n): {"origin_prompt": f"Q: {n + start}" if n else turn, "prediction": text, "gold": str(n + start)}
        for n, text in enumerate(answers)
    }


@pytest.fixture
def folder(tmp_path):
    run = tmp_path / "out" / "20261130_100715"
    put(run / "predictions" / "echo" / "toy.json", predictions(["0", "x", "2", "3"]))
    details = [
        {"example_abbr": f"toy_{n}", "pred": [str(n)], "refr": [str(n)], "is_correct": [n != 1]} for n in range(4)
    ]
    put(run / "results" / "echo" / "toy.json", {"accuracy": 75.0, "details": details})
    put(run / "configs" / "20261130_100715_1.py", CONFIG)
    put(
        run / "summary" / "s.csv",
        "dataset,version,metric,mode,echo\nother,-,accuracy,gen,1\ntoy,cf7842,accuracy,gen,75\n",
    )
    return run


def test_what_can_be_known_is_known_and_the_rest_is_labelled(folder, tmp_path):
    run = load_run(folder)
    assert (run.origin, run.run_id, run.status) == ("opencompass", "out/20261130_100715", "finished")
    assert run.started == "2026-11-30T10:07:15" and run.results() == [("echo", "toy")]
    assert run.settings("echo", "toy") == {
        "model_id": "some/where", "prompt_hash": "cf7842", "scorer": "x.AccEvaluator", "max_out_len": 5, "batch_size": 4
    }  # fmt: skip
    store = Store(f"sqlite:///{tmp_path}/s.db")
    store.register_evaluation(folder, strict=True)
    found = store.results()[0]
    assert (found.value, found.n, found.low) == (75.0, 4, 100 * wilson(3, 4).low)
    assert found.labels == ["decode spec unknown", "weights unknown", "cost unknown"]
    assert found.settings["prompt_hash"] == "cf7842" and found.nfe is None


def test_items_carry_prompt_response_answer_and_verdict(folder):
    records = foreign_items(folder, "echo", "toy").records
    assert [record.correct for record in records] == [True, False, True, True]
    assert (records[1].prompt, records[1].response, records[1].reference) == ("Q: 1", "x", "1")
    assert records[0].prompt == "HUMAN: Q" and records[2].extracted == "2"


def test_results_without_verdicts_fall_back_on_the_reported_share(folder):
    put(folder / "results" / "echo" / "toy.json", {"accuracy": 75.0})
    row = foreign_row(folder, "echo", "toy")
    assert (row.value, row.n, row.low) == (75.0, 4, 100 * wilson(3, 4).low) and "no verdict per item" in row.labels


def test_a_number_that_is_no_share_of_the_items_gets_no_interval(folder):
    put(folder / "results" / "echo" / "toy.json", {"accuracy": 71.3})
    row = foreign_row(folder, "echo", "toy")
    assert (row.value, row.low, row.high) == (71.3, None, None)
    put(folder / "results" / "echo" / "toy.json", {"rouge1": 50.0})
    assert foreign_row(folder, "echo", "toy").metric == "rouge1" and foreign_row(folder, "echo", "toy").low is None


def test_verdicts_that_disagree_with_the_reported_number_are_labelled(folder):
    found = json.loads((folder / "results" / "echo" / "toy.json").read_text())
    put(folder / "results" / "echo" / "toy.json", found | {"accuracy": 80.0})
    assert "items give 75.00, the result file says 80.00" in foreign_row(folder, "echo", "toy").labels


def test_missing_failed_and_corrupt_results_are_shown(folder):
    result = folder / "results" / "echo" / "toy.json"
    put(result, {"error": "evaluator failed"})
    assert foreign_row(folder, "echo", "toy").labels[-2:] == ["evaluator failed", "not scored"]
    put(result, "{half")
    row = foreign_row(folder, "echo", "toy")
    assert row.value is None and any("not readable JSON" in label for label in row.labels)
    result.unlink()
    row = foreign_row(folder, "echo", "toy")
    assert (row.value, row.n) == (None, 4) and "not scored" in row.labels


def test_repeated_runs_are_clustered_by_question(folder):
    answers = predictions(["0", "1", "2"])
    put(folder / "predictions" / "echo" / "toy.json", {str(n): answers[str(n % 3)] for n in range(6)})
    details = [{"pred": ["a", "b"], "refr": ["x", "x"], "correct": [True, first]} for first in (False, True, False)]
    put(folder / "results" / "echo" / "toy.json", {"accuracy (2 runs average)": 400 / 6, "details": details})
    records = foreign_items(folder, "echo", "toy").records
    assert [record.correct for record in records] == [True, True, True, False, True, False]
    assert [record.repeat for record in records] == [0, 0, 0, 1, 1, 1] and len({r.question_id for r in records}) == 3
    row = foreign_row(folder, "echo", "toy")
    expected = clustered([1, 1, 1, 0, 1, 0], [0, 1, 2, 0, 1, 2])
    assert row.value == pytest.approx(400 / 6) and row.low == pytest.approx(100 * max(0.0, expected.low))
    assert not any("result file says" in label for label in row.labels)


def test_equal_prompts_stay_two_items(folder):
    one = predictions(["0", "1"])["1"]
    put(folder / "predictions" / "echo" / "toy.json", {"0": one, "1": one})
    put(folder / "results" / "echo" / "toy.json", {"accuracy": 50.0})
    records = foreign_items(folder, "echo", "toy").records
    assert len({r.item_id for r in records}) == 2 == len({r.question_id for r in records})


def test_two_plain_folders_compare_item_by_item(folder, tmp_path):
    other = tmp_path / "out2" / "20261130_110000"
    put(other / "predictions" / "echo2" / "toy.json", predictions(["0", "1", "x", "3"]))
    details = {str(n): {"pred": "?", "answer": str(n), "correct": n in (0, 1)} for n in range(4)} | {"type": "GEN"}
    put(other / "results" / "echo2" / "toy.json", {"accuracy": 50.0, "details": details})
    found = compare_runs(load_run(folder), load_run(other)).benchmarks[0]
    expected = paired_binary([True, False, True, True], [True, True, False, False])
    assert (found.n, found.test.wins, found.test.losses, found.test.p) == (
        4,
        expected.wins,
        expected.losses,
        expected.p,
    )
    assert any("prompt" in label and "not recorded" in label for label in found.labels)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8, 0.99])
def test_a_prediction_file_cut_by_a_crash_is_recognised_and_gives_its_whole_items(tmp_path, cut):
    whole = predictions([f'answer "{n}" {{' for n in range(20)])
    text = json.dumps(whole, indent=4, ensure_ascii=False)
    path = tmp_path / "toy.json"
    path.write_text(text[: int(cut * len(text))])
    found = read_predictions(path)
    kept = len(found.items)
    assert found.problem and found.items == {str(n): whole[str(n)] for n in range(kept)}
    assert kept >= int(cut * 20) - 1
    path.write_text(text)
    assert read_predictions(path).problem is None and read_predictions(path).items == whole


@pytest.mark.parametrize("text", ["", "[", "[1, 2]", "null", "\x00", '{"0": 3}', '{"0"', '{"0":', "{" * 5000])
def test_files_that_hold_no_prediction_are_a_problem_not_a_crash(tmp_path, text):
    (tmp_path / "toy.json").write_text(text)
    found = read_predictions(tmp_path / "toy.json")
    assert found.items == {} and found.problem


def test_parts_belong_to_their_data_set_and_look_alikes_do_not(tmp_path):
    for name in ("split_0", "split_1", "split_10", "coll", "coll_0", "single_7"):
        put(tmp_path / f"{name}.json", {})
    found = {base: [path.stem for path in paths] for base, paths in prediction_files(tmp_path).items()}
    assert found == {
        "split": ["split_0", "split_1", "split_10"], "coll": ["coll"], "coll_0": ["coll_0"], "single_7": ["single_7"]
    }  # fmt: skip


def test_half_written_predictions_are_indexed_with_the_label(folder):
    path = folder / "predictions" / "echo" / "toy.json"
    path.write_text(path.read_text()[:-200])
    row = foreign_row(folder, "echo", "toy")
    assert 0 < row.n < 4 and any("damaged or half-written" in label for label in row.labels)


def test_damaged_configs_are_no_obstacle(folder):
    put(folder / "configs" / "20261130_100715_2.py", "models=[dict(")
    assert load_run(folder).settings("echo", "toy")["model_id"] == "some/where"
    assert foreign_results(folder) == [("echo", "toy")]
