"""Parts of the runtime that need no OpenCompass."""

from __future__ import annotations

import json

import pytest

from dare_eval.errors import DataError, IncompleteError, SetupError
from dare_eval.records.items import ItemRecord
from dare_eval.runtime.data_paths import canonical_solutions, expand, humaneval_rows
from dare_eval.runtime.devices import visible_devices
from dare_eval.runtime.dotted import dotted_types, resolve
from dare_eval.runtime.failures import Failure, failure_from, failure_of, record_failure, take_back
from dare_eval.runtime.predictions import load_all, part_files, read_entries
from dare_eval.runtime.sidecars import differences, digest, read_sidecar, write_sidecar
from dare_eval.runtime.upstream_score import number_of, verdicts


def entries(*texts):
    return {str(i): {"prediction": text} for i, text in enumerate(texts)}


def test_fingerprints_do_not_depend_on_key_order():
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest({"a": 1}) != digest({"a": "1"})


def test_differences_name_the_setting():
    old = {"model": {"decoding": {"threshold": None, "steps": 4}}, "items": "x"}
    new = {"model": {"decoding": {"threshold": 0.9, "steps": 4}}, "items": "x"}
    assert list(differences(old, new)) == ["model.decoding.threshold: null -> 0.9"]
    assert list(differences({"a": (1, 2)}, {"a": [1, 2]})) == []


def test_sidecars(tmp_path):
    output = tmp_path / "d.json"
    assert read_sidecar(output)["fingerprint"] == ""
    write_sidecar(output, {"a": 1}, {"kind": "gsm8k"})
    assert read_sidecar(output) == {"fingerprint": digest({"a": 1}), "settings": {"a": 1}, "notes": {"kind": "gsm8k"}}
    (tmp_path / "d.fingerprint").write_text("{")
    assert read_sidecar(output)["fingerprint"] == ""


@pytest.mark.parametrize("keep", range(0, 200, 7))
def test_a_cut_predictions_file_gives_its_whole_entries(tmp_path, keep):
    text = json.dumps(entries("a", 'b "quoted" }', "c", "d" * 50), indent=4)
    path = tmp_path / "d.json"
    path.write_text(text[:keep])
    found = read_entries(path)
    assert not found.whole
    assert [entry["prediction"] for entry in found.entries] == ["a", 'b "quoted" }', "c"][: len(found.entries)]
    path.write_text(text)
    assert read_entries(path).whole
    assert len(read_entries(path).entries) == 4


def test_parts_are_read_by_number_and_counted(tmp_path):
    target = tmp_path / "d.json"
    for number in (0, 1, 2, 10):
        (tmp_path / f"d_{number}.json").write_text(json.dumps(entries(str(number))))
    (tmp_path / "d_hard.json").write_text("{}")
    assert [path.name for path in part_files(target)] == ["d_0.json", "d_1.json", "d_2.json", "d_10.json"]
    assert [entry["prediction"] for entry in load_all(target, 4)] == ["0", "1", "2", "10"]
    with pytest.raises(IncompleteError, match="4 of 5"):
        load_all(target, 5)
    with pytest.raises(IncompleteError, match="missing"):
        load_all(tmp_path / "other.json", 1)


class TestUpstreamVerdicts:
    """The shapes in which upstream's evaluators write details."""

    def test_list_of_flat_details(self):
        result = {"accuracy": 50.0, "details": [{"pred": "1", "correct": True}, {"pred": "2", "correct": False}]}
        found = verdicts(result, ["1", "2"], ["1", "3"], "Gsm8kEvaluator")
        assert [(one.correct, one.extracted) for one in found] == [(True, "1"), (False, "2")]

    def test_details_of_the_base_class_hold_lists(self):
        result = {"details": [{"pred": ["1"], "correct": [True], "example_abbr": "d_0"}]}
        assert verdicts(result, ["1"], ["1"], "X")[0].correct is True

    def test_repeats_are_spread_over_their_rows(self):
        details = [{"is_correct": [True, False], "pred": ["a", "b"]}, {"is_correct": [False, True], "pred": ["c", "d"]}]
        found = verdicts({"details": details}, ["a", "c", "b", "d"], ["x"] * 4, "X")
        assert [one.correct for one in found] == [True, False, False, True]
        assert [one.extracted for one in found] == ["a", "c", "b", "d"]

    def test_dict_of_details(self):
        details = {"type": "GEN", "0": {"predictions": "A", "references": "A"}, "1": {"predictions": "B"}}
        found = verdicts({"details": details}, ["A", "B"], ["A", "C"], "AccEvaluator")
        assert [one.correct for one in found] == [True, False]

    def test_missing_details_are_not_guessed(self):
        found = verdicts({"details": [{"correct": True}]}, ["a", "b", "c"], ["a"] * 3, "MATHVerifyEvaluator")
        assert found[1].correct is not False or found[1].correct is None
        assert [one.extracted for one in verdicts({}, ["a", None], ["a", "b"], "X")] == ["a", None]

    def test_headline_number(self):
        assert number_of({"type": 1, "naive": 3.0, "accuracy": 50.0, "details": []}).to_dict() == {
            "status": "ok",
            "metric": "accuracy",
            "value": 50.0,
        }
        assert number_of({"details": []}).status == "failed"


def test_failures_are_files(tmp_path):
    error = DataError("broken", seen="x", allowed="y", remedy="z")
    failure = failure_from(error, model="m/n", dataset="d", stage="infer", log="l")
    assert (failure.cause, failure.seen, failure.allowed, failure.remedy) == ("broken", "x", "y", "z")
    record_failure(tmp_path, failure)
    record_failure(tmp_path, Failure(model="m/n", dataset="d", stage="score", cause="a consequence"))
    assert failure_of(tmp_path, "m/n", "d") == failure
    take_back(tmp_path, "m/n", "d", stages=("score",))
    assert failure_of(tmp_path, "m/n", "d") is not None
    take_back(tmp_path, "m/n", "d")
    assert failure_of(tmp_path, "m/n", "d") is None


def test_failures_of_unknown_errors_keep_the_trace():
    try:
        raise ValueError("why")
    except ValueError as error:
        failure = failure_from(error, model="m", dataset="d", stage="infer")
    assert failure.cause == "ValueError: why"
    assert "test_units.py" in failure.trace
    assert failure.remedy


@pytest.mark.parametrize(
    ("chosen", "names"),
    [("", []), ("0,2", ["0", "2"]), ("GPU-abc, GPU-def", ["GPU-abc", "GPU-def"]), ("-1", []), ("NoDevFiles", [])],
)
def test_devices_follow_the_environment(monkeypatch, chosen, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert visible_devices() == names


def test_dotted_paths_say_what_is_wrong():
    assert resolve("class", "dare_eval.records.items.ItemRecord") is ItemRecord
    with pytest.raises(SetupError, match=r"did you mean 'dare_eval\.records\.items\.ItemRecord'"):
        resolve("class", "dare_eval.records.items.ItemRecrod")
    with pytest.raises(SetupError, match="No module named"):
        resolve("class", "no_such_place.Thing")
    assert dotted_types({"type": "a.B", "x": [{"type": "c.D"}, {"type": "Plain"}], "y": ({"type": "e.F"},)}) == {
        "a.B",
        "c.D",
        "e.F",
    }


def test_data_paths(monkeypatch, tmp_path):
    monkeypatch.setenv("DARE_DATA", str(tmp_path))
    assert expand("$DARE_DATA/a/b") == f"{tmp_path}/a/b"
    assert expand("${DARE_DATA}/a") == f"{tmp_path}/a"
    assert expand("plain/$DARE_DATA") == "plain/$DARE_DATA"
    monkeypatch.delenv("DARE_DATA")
    with pytest.raises(DataError, match="export DARE_DATA"):
        expand("$DARE_DATA/a")


def test_humaneval_rows_come_from_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path))
    rows = [json.loads(line) for line in humaneval_rows().read_text().splitlines()]
    assert len(rows) == 164
    replies = [json.loads(line) for line in canonical_solutions().read_text().splitlines()]
    assert [reply["item"] for reply in replies] == [row["task_id"] for row in rows]
    assert expand("humaneval:canonical") == str(tmp_path / "humaneval" / "canonical_solutions.jsonl")


def test_failure_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    (tmp_path / "full").write_text("no folder can be made here")
    failure = Failure(model="m", dataset="d", stage="infer", cause="the disk filled up")
    record_failure(tmp_path / "full", failure)
    assert "m/d: the disk filled up (not recorded" in caplog.text
