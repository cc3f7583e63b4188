"""What a fingerprint must notice beside settings: the source of classes and functions that a config names."""

from __future__ import annotations

import importlib
import sys

import pytest

pytestmark = pytest.mark.xdist_group("opencompass")


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A module that is not ours; calling it changes its text."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "outside_dare.py"

    def write(text: str) -> None:
        path.write_text(text)
        sys.modules.pop("outside_dare", None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("outside_dare", None)


@pytest.mark.parametrize("place", ["pred_postprocessor", "dataset_postprocessor", "model"])
def test_results_notice_an_edited_postprocessor(outside, place):
    from dare_eval.runtime.fingerprint import result_settings

    cleaner = {"type": "outside_dare.last"}
    model_cfg = {"pred_postprocessor": cleaner} if place == "model" else {}
    eval_cfg = {"evaluator": {"type": "AccEvaluator"}, **({} if place == "model" else {place: cleaner})}
    seen = []
    for end in ("-1", "-1", "0"):
        outside(f"def last(text):\n    return text.split()[{end}]\n")
        seen.append(result_settings({}, model_cfg, {"eval_cfg": eval_cfg}, "both"))
    assert seen[0] == seen[1] != seen[2]


def test_predictions_notice_an_edited_model_class(outside):
    from opencompass.openicl.icl_retriever import ZeroRetriever

    from dare_eval.runtime.fingerprint import prediction_settings
    from dare_eval.runtime.model_facts import ModelFacts
    from tests.runtime.fakes import SumDataset

    infer_cfg = {"retriever": {"type": ZeroRetriever}}
    reader = {"input_columns": ["question"], "output_column": "answer"}
    dataset_cfg = {"type": SumDataset, "abbr": "add", "reader_cfg": reader, "infer_cfg": infer_cfg}
    seen = []
    for answer in (1, 1, 2):
        outside(f"class Model:\n    answer = {answer}\n")
        seen.append(prediction_settings({"type": "outside_dare.Model"}, ModelFacts(), dataset_cfg))
    assert seen[0] == seen[1] != seen[2]
    assert {key for key in seen[0] if seen[0][key] != seen[2][key]} == {"model_source"}


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "vocab.txt"])
def test_predictions_notice_an_edited_tokenizer(tmp_path, name):
    from dare_eval.runtime.fingerprint import _tokenizer_hash

    (tmp_path / name).write_text("old")
    before = _tokenizer_hash(str(tmp_path))
    (tmp_path / "manifest.json").write_text("no part of it")
    assert _tokenizer_hash(str(tmp_path)) == before
    (tmp_path / name).write_text("new")
    assert _tokenizer_hash(str(tmp_path)) != before
