"""Options of ``dare-eval run`` that are refused before anything is decoded."""

from __future__ import annotations

import pytest

from dare_eval.commands.run_config import prepare
from dare_eval.commands.run_models import Names, chosen_config
from dare_eval.errors import UsageError
from tests.conftest import ROOT


def test_an_unknown_scorer_is_refused_before_the_run(tmp_path):
    cfg = {"infer": {"partitioner": {"type": "upstream"}}, "eval": {"runner": {"task": {}}}}
    options = {"work_dir": tmp_path, "fresh": False, "limit": None, "workers": None}
    with pytest.raises(UsageError, match="did you mean 'dare'"):
        prepare(cfg, scorer="daer", **options)
    assert prepare(cfg, scorer="both", **options) == tmp_path
    assert cfg["eval"]["runner"]["task"]["scorer"] == "both"


def test_unknown_models_are_told_how_the_shipped_tiny_ones_are_run(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'llada-8b-instruct'") as raised:
        chosen_config(None, Names(["llada-8b-instuct"], ["gsm8k"], []), tmp_path / "runs")
    assert "tiny-sudoku: dare-eval run configs/eval/tiny_sudoku.py" in raised.value.remedy
    with pytest.raises(UsageError, match="is run by its config") as raised:
        chosen_config(None, Names(["tiny-list-ops"], ["gsm8k"], []), tmp_path / "runs")
    config = raised.value.remedy.removeprefix("dare-eval run ")
    assert (ROOT / config).is_file() and not (tmp_path / "runs").exists()
