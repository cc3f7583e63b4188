"""A family from an outside package: one small module and an entry point, nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

FAMILY = """
from dare_eval.networks.families.base import Family, qwen_fields

def parse(raw):
    return qwen_fields(raw) | {"shift": True, "block_length": raw.get("block_size", 2)}

FAMILY = Family(name="other", model_types=("other_dllm",), architectures=("OtherForDiffusion",), parse=parse)
"""
USE = """
import sys, torch
from dare_eval.networks import build_network, load_network, save_network
from dare_eval.spec import FAMILIES
from tests.networks.shapes import QWEN
raw = QWEN | {"model_type": "other_dllm"}
network = build_network(raw, generator=torch.Generator().manual_seed(0))
assert network.config.family == "other" and network.config.shift and network.config.block_length == 2
save_network(network, sys.argv[1])
again = load_network(sys.argv[1])
ids = torch.tensor([[1, 2, 3, 4]])
with torch.no_grad():
    assert torch.equal(network(ids), again(ids))
assert "other" in FAMILIES
"""


def test_an_outside_package_adds_a_family(tmp_path, root):
    site = tmp_path / "site"
    info = site / "other_dllm-0.1.dist-info"
    info.mkdir(parents=True)
    (site / "other_dllm.py").write_text(FAMILY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-dllm\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[dare.families]\nother = other_dllm:FAMILY\n")
    env = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{root}"}
    command = [sys.executable, "-c", USE, str(tmp_path / "checkpoint")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(FAMILY.splitlines()) <= 150
