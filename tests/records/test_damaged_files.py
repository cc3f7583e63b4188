"""Whatever a file holds, reading a run gives rows, labels or a DataError; never another exception, never a lost run."""

import copy
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dare_eval.errors import DareError
from dare_eval.records.compare import compare_runs
from dare_eval.records.item_files import read_items
from dare_eval.records.manifest import read_manifest
from dare_eval.records.runs import load_run
from dare_eval.records.store import Store
from dare_eval.records.summary import read_report, write_report
from tests.records.record_kit import records

A = [n % 3 == 0 for n in range(6)]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
QUIET = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def spots(value, path=()):
    """Return the path of every node of a JSON value."""
    found = [path]
    if isinstance(value, dict):
        found += [spot for key in value for spot in spots(value[key], (*path, key))]
    if isinstance(value, list):
        found += [spot for number, entry in enumerate(value) for spot in spots(entry, (*path, number))]
    return found


def damaged(value, data):
    """Return a copy of ``value`` with one node removed or replaced by junk."""
    value = copy.deepcopy(value)
    path = data.draw(st.sampled_from(spots(value)))
    junk = data.draw(JUNK)
    if not path:
        return junk
    parent = value
    for step in path[:-1]:
        parent = parent[step]
    if isinstance(parent, dict) and data.draw(st.booleans()):
        del parent[path[-1]]
    else:
        parent[path[-1]] = junk
    return value


@pytest.fixture
def run(make_run):
    folder = make_run("a", records(A, detail={"k": 1}, tokens=(1, 2)))
    store = load_run(folder)
    from dare_eval.records.run_rows import run_rows

    write_report(folder, [found.row for found in run_rows(store)])
    return folder


@given(st.data())
@QUIET
def test_manifest(run, tmp_path, data):
    whole = json.loads((run / "manifest.json").read_text())
    try:
        (run / "manifest.json").write_text(json.dumps(damaged(whole, data)))
        assert_survives(run, tmp_path)
        try:
            read_manifest(run)
        except DareError as error:
            assert "manifest" in str(error)
    finally:
        (run / "manifest.json").write_text(json.dumps(whole))


@given(st.data())
@QUIET
def test_report(run, tmp_path, data):
    whole = json.loads((run / "report.json").read_text())
    try:
        (run / "report.json").write_text(json.dumps(damaged(whole, data)))
        assert_survives(run, tmp_path)
        try:
            read_report(run / "report.json")
        except DareError as error:
            assert "report" in str(error)
    finally:
        (run / "report.json").write_text(json.dumps(whole))


@given(st.data())
@QUIET
def test_item_line(run, tmp_path, data):
    path = run / "records" / "model" / "toy.jsonl"
    whole = path.read_text()
    lines = whole.splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = json.dumps(damaged(json.loads(lines[number]), data))
    try:
        path.write_text("\n".join(lines) + "\n")
        found = read_items(path)
        assert len(found.records) + len(found.problems) + found.replaced == len(lines)
        assert_survives(run, tmp_path)
    finally:
        path.write_text(whole)


@given(st.data())
@QUIET
def test_plain_opencompass_files(run, tmp_path, data):
    folder = tmp_path / "plain" / "20260101_000000"
    prediction = {str(n): {"origin_prompt": f"Q{n}", "prediction": "x", "gold": "y"} for n in range(3)}
    result = {"accuracy": 100 / 3, "details": [{"pred": ["x"], "answer": ["y"], "correct": [n == 0]} for n in range(3)]}
    for name, value in (("predictions", prediction), ("results", result)):
        path = folder / name / "m" / "d.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(damaged(value, data) if data.draw(st.booleans()) else value))
    try:
        assert_survives(folder, tmp_path)
    finally:
        shutil.rmtree(folder.parent)


def assert_survives(folder, tmp_path):
    """Registering keeps the run, and comparing it with itself works or says why not."""
    store = Store(f"sqlite:///{tmp_path}/s.db")
    before = len(store.evaluations(all_states=True))
    evaluation = store.register_evaluation(folder)
    assert evaluation <= before + 1 and len(store.results(all_states=True)) >= before
    try:
        compare_runs(load_run(folder), load_run(folder))
    except DareError as error:
        assert str(error)
