"""Metric values of reference code; a file whose kind is not known here fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dare_eval.report.aup import aup
from tests.golden.folders import golden_json, label


def check_aup(case):
    point_list = [(rho, y) for rho, y in case["points"]]
    found = aup(point_list, case["y_max"], alpha=case["alpha"], tolerated_loss=case["y_min_offset"])
    if case["aup"] is None:
        assert found.beyond, "the reference refuses here"
    else:
        assert not found.beyond
        assert found.value == pytest.approx(case["aup"], rel=1e-12)


CHECKS = {"aup": check_aup}


def test_there_are_metric_files_in_the_project():
    assert list((Path(__file__).parent / "metrics").glob("*.json"))


@pytest.mark.parametrize("path", golden_json("metrics"), ids=label)
def test_metric(path):
    content = json.loads(path.read_text())
    kind = content.get("kind", content.get("algorithm"))
    assert kind in CHECKS, f"{path} is of kind '{kind}', which no check here knows"
    assert content["cases"]
    for case in content["cases"]:
        CHECKS[kind](case)
