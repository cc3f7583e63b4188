"""Reference values of training algorithms; a file whose kind is not known here fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.folders import golden_json, label
from tests.golden.forward_checks import FORWARD_CHECKS
from tests.golden.preference_checks import PREFERENCE_CHECKS
from tests.golden.rl_actor_checks import ACTOR_CHECKS
from tests.golden.rl_checks import RL_CHECKS
from tests.golden.rl_part_checks import PART_CHECKS
from tests.golden.rl_replay_checks import REPLAY_CHECKS
from tests.golden.sft_checks import SFT_CHECKS

CHECKS = {
    **SFT_CHECKS,
    **FORWARD_CHECKS,
    **PREFERENCE_CHECKS,
    **RL_CHECKS,
    **REPLAY_CHECKS,
    **PART_CHECKS,
    **ACTOR_CHECKS,
}


def test_there_are_algorithm_files_in_the_project():
    assert list((Path(__file__).parent / "algorithms").glob("*.json"))


@pytest.mark.parametrize("path", golden_json("algorithms"), ids=label)
def test_reference_values(path):
    content = json.loads(path.read_text())
    kind = content.get("kind")
    assert kind in CHECKS, f"{path} is of kind '{kind}', which no check here knows"
    CHECKS[kind](content["inputs"], content["params"], content["expected"])
