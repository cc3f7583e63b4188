"""Cases of category ``reporting``; this module owns the category. Further lines of the same forms pass when dropped in.

A line of a form that is not known here is a failure.
"""

from __future__ import annotations

import pytest

from dare_eval.records.comparable import compare_settings
from dare_eval.records.cost import cost_of, generated_tokens
from dare_eval.records.items import ItemRecord
from dare_eval.records.stats import pass_at_k, weighted_mean, whole_average
from tests.cases.case_lines import ids, lines


def check_shards(given, expected):
    found = weighted_mean((shard["right"], shard["n"]) for shard in given["shards"])
    if expected["accuracy"] is None:
        assert found is None
    else:
        assert 100 * found == pytest.approx(expected["accuracy"], abs=expected.get("tol", 1e-9))


def check_pass_at_k(given, expected):
    found = pass_at_k(**given["pass_at_k"])
    assert found == (
        None if expected["value"] is None else pytest.approx(expected["value"], abs=expected.get("tol", 1e-9))
    )


def check_throughput(given, expected):
    count = generated_tokens(given["output_ids"], {"EOS", *given.get("eos_ids", ())})
    cost = cost_of([ItemRecord(item_id="a", generated_tokens=count, nfe=given["nfe"], wall_s=given["wall_s"])])
    found = {
        "generated_tokens": count,
        "tokens_per_forward": cost.tokens_per_forward,
        "tokens_per_second": cost.tokens_per_second,
    }
    tolerance = expected.get("tol", 1e-9)
    for name in expected.keys() - {"tol"}:
        assert found[name] == pytest.approx(expected[name], abs=tolerance), name


def check_two_runs(given, expected):
    found = compare_settings(*given["two_runs"])
    assert found.comparable is expected["comparable"]
    if "reason_contains" in expected:
        assert any(expected["reason_contains"] in reason for reason in found.reasons), found.reasons


def check_partial_average(given, expected):
    present = given["scores_present_for"]
    scores = present if isinstance(present, dict) else dict.fromkeys(present, 50.0)
    found = whole_average(scores, given["declared"])
    assert found.missing == tuple(expected.get("missing", ()))
    if expected["average"] is None:
        assert found.value is None
    else:
        assert found.value == pytest.approx(expected["average"])


CHECKS = {
    "shards": check_shards,
    "pass_at_k": check_pass_at_k,
    "output_ids": check_throughput,
    "two_runs": check_two_runs,
    "scores_present_for": check_partial_average,
}
CASES = lines("reporting")


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_reporting(case):
    forms = [form for form in CHECKS if form in case["input"]]
    assert len(forms) == 1, f"{case['id']}: no check here knows a case with {sorted(case['input'])}"
    CHECKS[forms[0]](case["input"], case["expected"])
