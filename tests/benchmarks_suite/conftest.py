"""Tiny checkpoints of every family, made once per session."""

from __future__ import annotations

import pytest

from tests.benchmarks_suite.checkpoints import FAMILIES, make_checkpoint


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders of tiny checkpoints by family; their end tokens are likely, so that responses end."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return {family: make_checkpoint(family, folder / family, eos_weight=6.0) for family in FAMILIES}


@pytest.fixture
def stocked(workplace, checkpoints):
    """A workplace in which the stock models' names lead to the tiny checkpoints."""
    for variable, family in {
        "LLADA_8B_INSTRUCT": "llada",
        "LLADA_8B_BASE": "llada",
        "LLADA_MOE_7B_A1B_INSTRUCT": "llada_moe",
        "LLADA_MOE_7B_A1B_BASE": "llada_moe",
        "DREAM_V0_INSTRUCT_7B": "dream",
        "DREAM_V0_BASE_7B": "dream",
        "SDAR_8B_CHAT": "sdar",
        "SDAR_30B_A3B_CHAT": "sdar_moe",
        "LLADA2_0_MINI": "llada2",
        "LLADA2_1_MINI": "llada2",
    }.items():
        workplace.env[f"DARE_MODEL_{variable}"] = str(checkpoints[family])
    return workplace
