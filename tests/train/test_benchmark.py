"""The training benchmark works, its rows follow the committed lengths, and its memory claims hold at a small size."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def measured(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmark") / "numbers.json"
    command = [sys.executable, "benchmarks/training.py", "--quick", "--out", str(out)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())


def test_every_part_reports_finite_positive_numbers(measured):
    assert set(measured) == {"packing", "loss", "samples", "overhead"}
    assert all(value > 0 for part in measured.values() for value in part.values())
    assert measured["overhead"]["share"] < 1


def test_packing_is_compared_on_the_rows_of_gsm8k(measured):
    packing = measured["packing"]
    assert 1.0 < packing["token_ratio"] < packing["token_ratio_512"]
    assert packing["share_of_token_ratio"] == pytest.approx(packing["speed_against_padded"] / packing["token_ratio"])


def test_chunks_need_less_memory_than_all_logits(measured):
    assert measured["loss"]["chunked_mib"] <= measured["loss"]["plain_mib"]


def test_committed_lengths_are_counts_without_any_text(root):
    known = json.loads((root / "benchmarks/gsm8k_lengths.json").read_text())
    assert set(known) == {"about", "bin_tokens", "rows", "answer_share"}
    assert sum(known["rows"]) == 7473
    middle = known["bin_tokens"] / 2
    mean = sum((bin_ * known["bin_tokens"] + middle) * rows for bin_, rows in enumerate(known["rows"])) / 7473
    assert mean == pytest.approx(180, abs=2)
