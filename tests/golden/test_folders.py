"""A golden file that is dropped in anywhere, under any name, reaches the test of its content; an unknown one fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.golden.folders import HERE


def collected(folder, *options):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/golden",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *options,
    ]
    env = {**os.environ, "DARE_GOLDEN": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


@pytest.fixture
def dropped(tmp_path):
    source = HERE / "sampling"
    folder = tmp_path / "some" / "where"
    folder.mkdir(parents=True)
    shutil.copytree(source / "llada_tiny", folder / "renamed_tiny")
    shutil.copyfile(source / "llada_logits.safetensors", folder / "renamed_logits.safetensors")
    sampling = json.loads((source / "llada_sampling.json").read_text())
    case = next(one for one in sampling["cases"] if one["torch_seed"] is None and not one.get("tie_dependent"))
    right = {**case, "model": "renamed_tiny", "name": "right"}
    wrong = {**right, "name": "wrong", "forward_calls": case["forward_calls"] + 1}
    strange = {**right, "name": "strange", "sampler": "of_tomorrow"}
    (folder / "more.json").write_text(json.dumps({"cases": [right, wrong, strange]}))
    likelihood = json.loads((source / "llada_likelihood.json").read_text())[:1]
    (folder / "few.json").write_text(json.dumps([{**likelihood[0], "model": "renamed_tiny"}]))
    algorithm = next(iter(sorted((HERE / "algorithms").glob("adv_*.json"))))
    shutil.copyfile(algorithm, folder / "one_more.json")
    shutil.copyfile(HERE / "metrics" / "aup.json", folder / "points.json")
    (folder / "unheard.json").write_text(json.dumps({"kind": "unheard_of"}))
    return tmp_path


def test_dropped_files_are_run_and_only_what_is_wrong_fails(dropped):
    text = collected(dropped, "--deselect", "tests/golden/test_folders.py", "-rfp")
    places = {}
    for line in text.splitlines():
        outcome, _, test = line.partition(" tests/golden/")
        if outcome in ("PASSED", "FAILED"):
            places[test.partition(" - ")[0]] = outcome
    failed = {name for name, result in places.items() if result == "FAILED"}
    assert failed == {
        "test_sampling.py::test_case_is_reproduced[where/more-wrong]",
        "test_sampling.py::test_case_is_reproduced[where/more-strange]",
        "test_algorithms.py::test_reference_values[where/unheard]",
    }, text
    passed = set(places) - failed
    assert "test_sampling.py::test_case_is_reproduced[where/more-right]" in passed
    assert "test_algorithms.py::test_reference_values[where/one_more]" in passed
    assert "test_metrics.py::test_metric[where/points]" in passed
    assert any(name.startswith("test_likelihood.py::test_likelihood_is_reproduced[where/few-") for name in passed)
    assert "test_logits.py::test_logits_equal_the_reference[where/renamed_logits-full_logits]" in passed
