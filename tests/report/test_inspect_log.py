"""Exported Inspect logs: what stands where, and that inspect_ai itself reads them."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from dare_eval.records.items import ItemRecord
from dare_eval.records.runs import load_run
from dare_eval.report.inspect_log import write_inspect_logs
from tests.records.record_kit import records

READER = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log
logs = [read_eval_log(path) for path in sys.argv[2:]]
listed = len(list_eval_logs(sys.argv[1]))
values = [log.results.scores[0].metrics["accuracy"].value for log in logs]
print(json.dumps([listed, [[log.status, len(log.samples), value] for log, value in zip(logs, values)]]))
"""


@pytest.fixture
def odd():
    """Graded, repeated, failed and awkward items."""
    made = records([True, False, True], response="x", detail={"why": "y"})
    graded = ItemRecord(item_id="g", correct=False, value=0.4, response="<b> \ud800 \x00", reference={"puzzle": "12"})
    repeat = ItemRecord(item_id="r2", question_id=made[0].item_id, repeat=1, correct=True, value=1.0, stop="length")
    return [*made, graded, repeat, ItemRecord(item_id="e", error="out of memory")]


def logs_of(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.iterdir())]


def test_scores_settings_and_costs_stand_where_inspect_looks(make_run, change_manifest, tmp_path):
    folder = make_run("a", records([True, False, True, True]), entry={"metric": "accuracy"})
    environment = {"packages": {"torch": "2"}, "git": {"commit": "c", "dirty": True}}
    change_manifest(folder, started="2026-01-01T00:00:00+00:00", environment=environment)
    (path,) = write_inspect_logs(load_run(folder), tmp_path / "logs")
    assert path.name.startswith("2026-01-01T00-00-00_toy-model_")
    (log,) = logs_of(tmp_path / "logs")
    assert (log["version"], log["status"], log["eval"]["task"], log["eval"]["model"]) == (2, "success", "toy", "model")
    assert log["eval"]["model_args"]["steps"] == 8 and log["eval"]["revision"]["commit"] == "c"
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.75
    sample = log["samples"][1]
    assert sample["scores"]["toy"]["value"] == "I" and sample["scores"]["toy"]["answer"] == "1"
    assert sample["metadata"]["nfe"] == 4 and sample["output"]["usage"]["output_tokens"] == 8
    assert len({one["id"] for one in log["samples"]}) == 4


def test_graded_repeated_and_failed_items_are_shown_as_such(make_run, tmp_path, odd):
    write_inspect_logs(load_run(make_run("a", odd)), tmp_path / "logs")
    (log,) = logs_of(tmp_path / "logs")
    assert log["status"] == "error" and log["eval"]["config"]["epochs"] == 2
    graded, repeat, failed = log["samples"][3:]
    assert graded["scores"]["toy"]["value"] == 0.4 and graded["target"] == '{"puzzle": "12"}'
    assert "\\ud800" in graded["output"]["completion"]
    assert (repeat["id"], repeat["epoch"]) == (log["samples"][0]["id"], 2)
    assert repeat["output"]["choices"][0]["stop_reason"] == "max_tokens"
    assert failed["error"]["message"] == "out of memory" and "scores" not in failed
    assert log["results"]["completed_samples"] == 5


def test_inspect_reads_what_was_exported(make_run, tmp_path, odd):
    """Inspect does not live in this environment: DARE_INSPECT_PYTHON names an interpreter that has it."""
    python = os.environ.get("DARE_INSPECT_PYTHON") or (sys.executable if importlib.util.find_spec("inspect_ai") else "")
    if not python:
        pytest.skip("inspect_ai is not installed; DARE_INSPECT_PYTHON may name an interpreter that has it")
    runs = [make_run("a", records([True, False, True, True])), make_run("b", odd)]
    paths = [path for run in runs for path in write_inspect_logs(load_run(run), tmp_path / "logs" / run.parent.name)]
    done = subprocess.run(
        [python, "-c", READER, str(tmp_path / "logs"), *map(str, paths)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed, found = json.loads(done.stdout.splitlines()[-1])
    assert listed == 2
    assert found == [["success", 4, 0.75], ["error", 6, pytest.approx(3 / 5)]]


def test_the_command_line_writes_them(dare, make_run, tmp_path):
    run = make_run("a", records([True, False]))
    code, out = dare("export", "inspect", "--run", run, "--out", tmp_path / "logs")
    assert code == 0 and "1 files" in out and len(logs_of(tmp_path / "logs")) == 1
    assert dare("export", "inspect", "--run", run)[0] == 2
