"""``dare-train show`` on folders that are no run, or not whole: an answer one can act on, never a traceback."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from dare_eval.errors import DareError, DataError, UsageError
from dare_eval.records.manifest import ModelEntry, RunManifest, write_manifest
from dare_train.rl.show import show_run

HELD = {"heldout_exact": 0.5, "heldout_exact_low": 0.4, "heldout_exact_high": 0.6}
LINE = {"step": 1, "loss": 0.5, "reward": 0.25, **HELD}
SAMPLE = {"step": 1, "key": "a", "prompt": "3 4 = 7", "reference": {}, "completions": []}


def shown(folder, **options):
    console = Console(record=True, width=160, file=io.StringIO())
    show_run(folder, console, **{"step": None, "samples": 2, "lines": 12, "wrong": False, "order": True, **options})
    return console.export_text()


@pytest.fixture
def run(tmp_path):
    """Write a folder of a run from its lines."""

    def write(metrics, samples=(), models=("m",)):
        entries = [ModelEntry(name=name, algorithm="d1", parent="tiny-countdown") for name in models]
        write_manifest(tmp_path, RunManifest(run_id="r", kind="training", models=entries))
        for name, lines in (("metrics", metrics), ("samples", samples)):
            texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(texts))
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("metrics", "samples"),
    [
        ([], []),
        ([LINE], [SAMPLE]),
        ([LINE, '{"step": 2, "lo'], ['{"step": 1, "key"']),
        ([{"step": 1, "loss": None}], []),
        ([LINE, {"iteration": 3}, "garbage"], []),
    ],
    ids=["begun", "whole", "killed", "no-number", "foreign-end"],
)
def test_what_there_is_of_a_run_is_shown(run, metrics, samples):
    text = shown(run(metrics, samples))
    assert "d1 from tiny-countdown" in text and ("0.25" in text) == (LINE in metrics)


@pytest.mark.parametrize(
    ("metrics", "samples", "models"),
    [
        ([{"step": 1, "loss": "low"}], [], ["m"]),
        ([{"step": 1, "heldout_exact": 0.5}], [], ["m"]),
        ([LINE], [{"step": 1, "text": "of another program"}], ["m"]),
        ([LINE], [{**SAMPLE, "completions": [{"text": "x"}]}], ["m"]),
        ([LINE], [], []),
    ],
)
def test_lines_of_another_program_are_named(run, metrics, samples, models):
    with pytest.raises(DataError, match=r"none that training writes|names no model"):
        shown(run(metrics, samples, models))


def test_no_run_at_all(tmp_path, run):
    with pytest.raises(UsageError, match="no training run"):
        shown(tmp_path / "nothing")
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(DareError, match="manifest"):
        shown(tmp_path)
    with pytest.raises(UsageError, match="that early"):
        shown(run([LINE], [{**SAMPLE, "step": 5}]), step=2)
