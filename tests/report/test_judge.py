"""Verdicts on made-up runs: match, within interval, off; what differs is named."""

import dataclasses
import json

import pytest

from dare_eval.errors import DataError
from dare_eval.records.manifest import read_manifest, write_manifest
from dare_eval.records.runs import load_run
from dare_eval.report.judge import environment_changes
from dare_eval.report.recorded import baseline_of, read_baseline, write_baseline
from dare_eval.report.reproducibility import report_run, verdict_of
from tests.records.record_kit import records

RIGHT = [k % 3 != 0 for k in range(60)]


def verdicts(report):
    return [(one.metric, one.verdict) for one in report.judgements]


def test_the_same_run_twice_is_a_match(make_run):
    first, second = make_run("a", RIGHT, weight_hash="w"), make_run("b", RIGHT, weight_hash="w")
    report = report_run(load_run(second), baseline_of(load_run(first)))
    assert verdicts(report) == [("accuracy", "match")] and verdict_of([report]) == "match"
    assert "same items right" in report.judgements[0].reason


@pytest.mark.parametrize("field", ["steps", "threshold", "temperature", "seed", "cache"])
def test_one_decode_parameter_is_off_even_when_the_score_is_equal(make_run, field):
    first = make_run("a", RIGHT, weight_hash="w", spec={field: 1})
    second = make_run("b", RIGHT, weight_hash="w", spec={field: 2})
    report = report_run(load_run(second), baseline_of(load_run(first)))
    assert verdict_of([report]) == "off"
    assert [str(change) for change in report.judgements[0].changed] == [f"{field} 1 -> 2"]
    assert f"{field} 1 -> 2" in report.judgements[0].reason


def test_a_decode_parameter_that_only_one_run_has_is_named(make_run):
    first = make_run("a", RIGHT, weight_hash="w")
    second = make_run("b", RIGHT, weight_hash="w", spec={"threshold": 0.9})
    for left, right, shown in ((first, second, "not set -> 0.9"), (second, first, "0.9 -> not set")):
        report = report_run(load_run(right), baseline_of(load_run(left)))
        assert [str(change) for change in report.judgements[0].changed] == [f"threshold {shown}"]


@pytest.mark.parametrize(
    ("entry", "maker", "name"),
    [
        ({"prompt_hash": "other"}, {}, "prompt (hash)"),
        ({"content_hash": "other"}, {}, "items (content hash)"),
        ({"template": "t2"}, {}, None),
        ({"scorer": "math@1"}, {}, "scorer"),
        ({}, {"weight_hash": "other"}, "weights"),
    ],
)
def test_other_measurements_are_off_by_name_and_what_is_unknown_is_not_accused(make_run, entry, maker, name):
    first = make_run("a", RIGHT, weight_hash="w")
    second = make_run("b", RIGHT, **({"weight_hash": "w"} | maker), entry=entry)
    judged = report_run(load_run(second), baseline_of(load_run(first))).judgements[0]
    assert judged.verdict == ("match" if name is None else "off")
    assert [change.name for change in judged.changed] == ([] if name is None else [name])


def test_a_scorer_of_a_newer_package_is_the_same_scorer(make_run):
    first, second = (make_run(n, RIGHT, weight_hash="w", entry={"scorer": f"toy@{n}"}) for n in ("1", "2"))
    assert verdict_of([report_run(load_run(second), baseline_of(load_run(first)))]) == "match"


def test_a_score_beside_the_recorded_one_is_judged_by_the_interval(make_run):
    first = make_run("a", RIGHT, weight_hash="w")
    near = make_run("near", [*RIGHT[:-2], True, False], weight_hash="w")
    far = make_run("far", [False] * 60, weight_hash="w")
    recorded = baseline_of(load_run(first))
    assert verdicts(report_run(load_run(near), recorded)) == [("accuracy", "within interval")]
    judged = report_run(load_run(far), recorded).judgements[0]
    assert judged.verdict == "off" and "outside [0.00" in judged.reason


def test_the_same_score_with_other_items_right_is_no_match(make_run):
    first = make_run("a", RIGHT, weight_hash="w")
    other = make_run("b", RIGHT[::-1], weight_hash="w")
    judged = report_run(load_run(other), baseline_of(load_run(first))).judgements[0]
    assert (judged.verdict, judged.reason) == ("within interval", "same score, but other items are right")


def test_missing_and_incomplete_results_are_off_and_new_ones_are_not(make_run, change_manifest):
    first = make_run("a", RIGHT, weight_hash="w")
    other = make_run("b", RIGHT, weight_hash="w", dataset="second")
    report = report_run(load_run(other), baseline_of(load_run(first)))
    assert sorted(one.verdict for one in report.judgements) == ["missing", "not recorded"]
    assert [one.verdict for one in report.bad] == ["missing"]
    short = make_run("c", RIGHT, weight_hash="w", entry={"expected": 70})
    judged = report_run(load_run(short), baseline_of(load_run(first))).judgements[0]
    assert judged.verdict == "off" and judged.reason.startswith("incomplete: 60 of 70")


def test_models_may_be_called_otherwise_when_each_side_has_one(make_run):
    first, second = (make_run(n, RIGHT, weight_hash="w", model=n) for n in ("old", "new"))
    assert verdict_of([report_run(load_run(second), baseline_of(load_run(first)))]) == "match"


def test_environment_changes_are_listed_and_do_not_decide(make_run, change_manifest):
    first, second = (make_run(n, RIGHT, weight_hash="w") for n in ("a", "b"))
    change_manifest(first, environment={"packages": {"torch": "2.13.0", "gone": "1"}, "device": "cpu"})
    change_manifest(second, environment={"packages": {"torch": "2.14.0", "new": "2"}, "device": "cpu"})
    report = report_run(load_run(second), baseline_of(load_run(first)))
    assert [str(change) for change in report.environment] == [
        "packages.gone 1 -> absent", "packages.new absent -> 2", "packages.torch 2.13.0 -> 2.14.0",
    ]  # fmt: skip
    assert verdict_of([report]) == "match"
    assert environment_changes({}, {"device": "cpu"}) == []


def test_a_saved_baseline_gives_the_verdicts_of_the_run(make_run, tmp_path, change_manifest):
    first, second = make_run("a", RIGHT, weight_hash="w"), make_run("b", RIGHT, weight_hash="w", spec={"steps": 4})
    change_manifest(first, environment={"device": "cpu"})
    write_baseline(tmp_path / "baseline.json", [baseline_of(load_run(first))])
    kept = read_baseline(tmp_path / "baseline.json")
    assert kept.numbers == baseline_of(load_run(first)).numbers and kept.environment == {"device": "cpu"}
    assert verdict_of([report_run(load_run(first), kept)]) == "match"
    assert verdict_of([report_run(load_run(second), kept)]) == "off"


def test_rows_of_a_report_alone_are_a_baseline(make_run, tmp_path):
    from dare_eval.records.run_rows import run_rows
    from dare_eval.records.summary import write_report

    run = load_run(make_run("a", RIGHT, weight_hash="w"))
    path = write_report(tmp_path / "kept", [found.row for found in run_rows(run)])
    assert verdict_of([report_run(run, read_baseline(path))]) == "match"


HEAD = '{"kind": "dare-baseline", "version": '


NUMBER = '{"model": "m", "dataset": "d", "metric": "a", "value": 1'


@pytest.mark.parametrize(("extra", "hint"), [
    (', "numbers": [], "number": 3', "numbers"),
    (f', "numbers": [{NUMBER}, "setings": {{}}}}]', "settings"),
    (f', "numbers": [{NUMBER}, "settings": {{"decode_spek": {{"steps": 4}}}}}}]', "decode_spec"),
])  # fmt: skip
def test_a_key_that_nobody_reads_is_refused_by_name(tmp_path, extra, hint):
    """A mistyped key would loosen the check: the settings under it would not be compared at all."""
    (tmp_path / "b.json").write_text(HEAD + "1" + extra + "}")
    with pytest.raises(DataError, match=f"did you mean '{hint}'"):
        read_baseline(tmp_path / "b.json")


@pytest.mark.parametrize("text", ["{", "3", "{}", HEAD + "99}", HEAD + '1, "numbers": [{"model": 1}]}', HEAD + "null}"])
def test_files_that_are_no_baseline_are_data_errors(tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(DataError):
        read_baseline(tmp_path / "b.json")


def test_a_share_without_an_interval_gets_one_from_its_items(make_run):
    """The stock evaluator's number has no interval of its own; a few other items must not make it off."""
    from dare_eval.records.run_rows import run_rows
    from dare_eval.records.summary import ResultRow, write_report

    def with_stock(name, value):
        folder = make_run(name, RIGHT, weight_hash="w")
        rows = [found.row for found in run_rows(load_run(folder))]
        names = {"model": "model", "dataset": "toy", "metric": "stock accuracy"}
        stock = ResultRow(**names, value=value, low=None, high=None, n=60, expected=60)
        write_report(folder, [*rows, stock])
        return load_run(folder)

    found = report_run(with_stock("b", 70.0), baseline_of(with_stock("a", 66.0)))
    assert verdicts(found) == [("accuracy", "match"), ("stock accuracy", "within interval")]


def test_a_run_without_a_manifest_is_reported_with_what_is_unknown(make_run):
    folder = make_run("a", records([True, False]))
    (folder / "manifest.json").write_text(json.dumps({"version": 99}))
    report = report_run(load_run(folder), None)
    assert verdict_of([report]) == "not compared" and report.run.problems
    write_manifest(folder, dataclasses.replace(read_manifest(make_run("b", [True])), run_id="a"))
