"""``dare-eval run CONFIG --path FOLDER``: a config on another checkpoint, without editing it."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")
CONFIG = ROOT / "configs" / "eval" / "tiny_sudoku.py"


def test_path_takes_the_place_of_the_checkpoint_that_a_config_names(workplace):
    folder = workplace.place / "mine"
    shutil.copytree(ROOT / "dare_eval" / "assets" / "tiny-sudoku", folder)
    workplace.env["DARE_LIMIT"] = "2"
    done = workplace.run("run", CONFIG, "--path", folder, program="dare-eval")
    assert done.code == 0, done.text
    [model] = json.loads((done.run / "manifest.json").read_text())["models"]
    assert str(folder) in json.dumps(model)
    assert done.row("exact")["n"] == 2


def test_path_beside_several_checkpoints_is_refused(workplace):
    several = workplace.config(
        "from dare_eval.models.llada import LLaDAModel\n"
        'models = [dict(type=LLaDAModel, abbr=name, path=name) for name in ("tiny-sudoku", "tiny-countdown")]\n'
        "datasets = []\n"
    )
    done = workplace.run("run", several, "--path", "tiny-list-ops", program="dare-eval")
    assert done.code == 2
    for part in ("tiny-countdown, tiny-sudoku", "DARE_MODEL_<NAME>"):
        assert part in done.err, done.text


def test_a_value_that_is_no_yaml_is_named(workplace):
    done = workplace.run(
        "run", "--model", "llada-8b-instruct", "--bench", "sudoku", "--set", "steps=[1", program="dare-eval"
    )
    assert done.code == 2
    for part in ("'steps'", "[1", "null"):
        assert part in done.err, done.text
