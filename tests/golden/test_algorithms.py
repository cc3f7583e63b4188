"""Reference values of training algorithms; a file whose kind is not known here fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.folders import golden_folders, label
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


def algorithm_files() -> list[Path]:
    """Return the files of every folder called ``algorithms`` in (or given as) a golden folder."""
    found = {path for folder in golden_folders() for path in folder.rglob("*.json")}
    return sorted(path for path in found if path.parent.name == "algorithms")


def test_there_are_algorithm_files_in_the_project():
    assert list((Path(__file__).parent / "algorithms").glob("*.json"))


@pytest.mark.parametrize("path", algorithm_files(), ids=label)
def test_reference_values(path):
    content = json.loads(path.read_text())
    assert content["kind"] in CHECKS, f"{path} is of kind '{content['kind']}', which no check here knows"
    CHECKS[content["kind"]](content["inputs"], content["params"], content["expected"])
