from __future__ import annotations

import json

import pytest

from dare_eval.errors import UsageError
from dare_eval.scoring import SCORERS, UNPARSABLE_GOLD, Score, score
from dare_eval.scoring.policy import DEFAULT, Policy, as_policy

KINDS = ("gsm8k", "math", "choice", "countdown", "sudoku", "instruction", "list_ops")


def test_the_documented_kinds_exist():
    assert {*KINDS, "code"} <= set(SCORERS.names())


def test_an_unknown_kind_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'gsm8k'"):
        score("gsm8", "1", "1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reference", [None, "", "  ", "nan", {}, [], "{", 3.5j])
def test_an_unusable_gold_is_counted_apart(kind, reference):
    found = score(kind, "<answer>1</answer>", reference)
    assert found.rule == UNPARSABLE_GOLD or (kind == "math" and reference not in (None, "", "  ", "nan"))
    assert not found.correct and found.value == 0.0


def test_a_missing_response_is_an_empty_one():
    assert score("gsm8k", None, "3") == score("gsm8k", "", "3")
    assert score("gsm8k", None, "3").rule == "no_answer"


def test_the_detail_is_json():
    references = {"countdown": {"numbers": [3, 4], "target": 7}, "sudoku": {"puzzle": "1030041020030021"}}
    references["sudoku"]["solution"] = "1234341221434321"
    for kind, reference in references.items():
        found = score(kind, "<answer>3+4</answer>", reference)
        assert json.loads(json.dumps(found.detail)) == found.detail


def test_a_score_is_immutable():
    with pytest.raises(AttributeError):
        Score(True, 1.0, "1", "box").correct = False


def test_policies_are_checked():
    with pytest.raises(UsageError, match="did you mean 'percent'"):
        score("gsm8k", "1", "1", policy={"precent": "strict"})
    with pytest.raises(UsageError, match="optional, ratio, strict"):
        Policy(percent="maybe")
    assert as_policy({"percent": "strict"}).changed() == {"percent": "strict"}
    assert as_policy(None) is DEFAULT


def test_a_scorer_from_an_outside_package(monkeypatch):
    from importlib.metadata import EntryPoint

    from dare_eval import registry

    point = EntryPoint("shout", "tests.scoring.test_base:shout", "dare.scorers")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "dare.scorers" else [])
    outside = registry.Registry("scorer", "dare.scorers", {})
    assert outside.get("shout")("YES", "yes") == Score(True, 1.0, "YES", "shout")


def shout(response, reference, **_):
    return Score(response == reference.upper(), float(response == reference.upper()), response, "shout")
