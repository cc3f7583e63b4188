"""A decoding rule of an outside package: found through its entry point, checked and run like a built-in one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dare_eval.spec import POLICIES
from tests.decoding.conftest import MODELS, TOKEN_IDS

RULE = '''
"""Commit every second mask."""
from dare_eval.decoding import Policy

class EverySecond(Policy):
    fields = frozenset({"threshold"})

    def select(self, step):
        rank_RM = step.live_RM.cumsum(-1)
        return step.live_RM & (rank_RM % 2 == 1)
'''
USE = f"""
from dare_eval.decoding import decode
from dare_eval.errors import UsageError
from dare_eval.networks import load_network
from dare_eval.spec import DecodeSpec
network = load_network({str(MODELS / "llada_tiny")!r}, token_ids={TOKEN_IDS!r})
spec = DecodeSpec.build("llada", gen_length=8, policy="every_second", threshold=0.5)
result = decode(network, [[1, 2, 3]], spec)[0]
assert result.step_map == [0, 1, 0, 2, 0, 1, 0, 3], result.step_map
assert DecodeSpec.from_dict(spec.to_dict()) == spec
try:
    DecodeSpec.build("llada", gen_length=8, policy="every_second", factor=1.0)
except UsageError as error:
    assert "factor" in str(error)
else:
    raise AssertionError("a field the rule does not declare was accepted")
print("fine")
"""


def test_an_outside_rule_decodes(tmp_path):
    (tmp_path / "outside_rule.py").write_text(RULE)
    info = tmp_path / "outside_rule-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-rule\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dare.decoders]\nevery_second = outside_rule:EverySecond\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", USE], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("name", ["frechet", "suffix"])
def test_published_rules_fit_the_budget_of_a_rule(name):
    module = sys.modules[POLICIES.get(name).__module__]
    with open(module.__file__, encoding="utf-8") as file:  # noqa: PTH123
        assert len(file.readlines()) <= 50
