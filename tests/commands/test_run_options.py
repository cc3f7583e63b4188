"""Options of ``dare-eval run`` that are refused before anything is decoded."""

from __future__ import annotations

import pytest

from dare_eval.commands.run_config import prepare
from dare_eval.errors import UsageError


def test_an_unknown_scorer_is_refused_before_the_run(tmp_path):
    cfg = {"infer": {"partitioner": {"type": "upstream"}}, "eval": {"runner": {"task": {}}}}
    options = {"work_dir": tmp_path, "fresh": False, "limit": None, "workers": None}
    with pytest.raises(UsageError, match="did you mean 'dare'"):
        prepare(cfg, scorer="daer", **options)
    assert prepare(cfg, scorer="both", **options) == tmp_path
    assert cfg["eval"]["runner"]["task"]["scorer"] == "both"
