"""What the recipes of the tiny models promise, trained anew: minutes each, run with -m slow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def reached(root, folder, *arguments):
    out = folder / "numbers.json"
    command = [sys.executable, "benchmarks/recipes.py", *arguments, "--out", str(out)]
    subprocess.run(command, cwd=root, check=True, timeout=3000)
    return json.loads(out.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "least"), [("sudoku", 0.95), ("sudoku_block", 0.9)])
def test_a_network_from_noise_solves_held_out_grids(root, tmp_path, recipe, least):
    for line in reached(root, tmp_path, recipe, "--seeds", "0"):
        assert line["exact"] >= least and line["cells"] > line["exact"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["vrpo", "vrpo_lora"])
def test_pairs_raise_held_out_margin_and_accuracy(root, tmp_path, recipe):
    first, *_, last = reached(root, tmp_path, recipe, "--seeds", "0")
    assert first["step"] == 0 and first["heldout_margin"] == 0
    assert last["heldout_margin_low"] > 0 and last["heldout_margin_accuracy_low"] > 0.5
    assert last["heldout_policy_accuracy"] > first["heldout_policy_accuracy"]
