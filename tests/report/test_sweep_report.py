"""The numbers of a sweep, against values worked out by hand and invariants."""

from __future__ import annotations

import math

import pytest

from dare_eval.records.items import ItemRecord
from dare_eval.records.summary import summarise
from dare_eval.report.aup import aup
from dare_eval.report.sweep import Point, curves, marks, over_templates, to_dict


def point(setting, correct, nfe, *, base="d", template=None, curve="c", items=None):
    names = items or range(len(correct))
    records = [
        ItemRecord(item_id=f"{base}{name}", correct=bool(right), value=float(right), nfe=nfe, generated_tokens=8)
        for name, right in zip(names, correct, strict=True)
    ]
    dataset = f"{base}@{template}" if template else base
    row = summarise(records, model=setting, dataset=dataset)
    return Point(setting=setting, curve=curve, dataset=dataset, base=base, template=template, row=row, records=records)


def test_marks_compare_within_a_data_set_only():
    points = [point("a", [1, 1, 0, 0], 4), point("b", [1, 0, 0, 0], 8), point("c", [1, 0, 0, 0], 8, base="other")]
    assert marks(points) == [True, False, True]


def test_aup_is_that_of_the_points_of_one_method_with_the_best_accuracy_of_all():
    points = [point("a", [1] * 19 + [0], 8), point("b", [1] * 18 + [0] * 2, 4), point("z", [1] * 20, 2, curve="other")]
    [found] = curves(points)
    assert (found.curve, found.points, found.kept, found.beyond) == ("c", 2, 2, False)
    assert found.value == pytest.approx(aup([(1.0, 95.0), (2.0, 90.0)], 100.0).value)
    assert found.low <= found.value <= found.high


def test_aup_of_other_items_has_no_interval():
    [found] = curves([point("a", [1, 1], 8), point("b", [1, 1], 4, items=(5, 6))])
    assert (found.low, found.high) == (None, None) and found.value > 0


def test_templates_give_mean_spread_and_ranks():
    points = [
        point("fast", [1, 1, 0, 0], 2, template="t1"),
        point("slow", [1, 1, 1, 0], 8, template="t1"),
        point("fast", [1, 1, 1, 1], 2, template="t2"),
        point("slow", [1, 1, 0, 0], 8, template="t2"),
    ]
    rows, [order] = over_templates(points)
    assert [(r.setting, r.mean, r.spread, r.best_rank, r.worst_rank) for r in rows] == [
        ("fast", 75.0, 50.0, 1, 2),
        ("slow", 62.5, 25.0, 1, 2),
    ]
    assert order.tau == -1 and not order.same_best


def test_order_that_holds_has_tau_one_and_ties_have_none():
    same = [point(s, c, 1, template=t) for t in "xyz" for s, c in (("a", [1, 1]), ("b", [1, 0]), ("c", [0, 0]))]
    _, [order] = over_templates(same)
    assert order.tau == pytest.approx(1.0) and order.same_best and order.templates == 3
    tied = [point(s, [1, 0], 1, template=t) for t in "xy" for s in "ab"]
    _, [order] = over_templates(tied)
    assert order.tau is None and order.same_best


def test_one_template_has_no_spread_and_a_setting_without_a_score_is_left_out():
    assert over_templates([point("a", [1], 1), point("b", [0], 1)]) == ([], [])
    points = [
        point("a", [1, 0], 1, template="x"),
        point("a", [1, 1], 1, template="y"),
        point("b", [1], 1, template="x"),
    ]
    rows, _ = over_templates(points)
    assert [row.setting for row in rows] == ["a"]


def test_record_is_json_ready_and_keeps_the_score():
    import json

    found = json.loads(json.dumps(to_dict([point("a", [1, 0], 4), point("b", [1, 1], 8)]), allow_nan=False))
    assert [one["value"] for one in found["points"]] == [50.0, 100.0]
    assert all(math.isfinite(one["value"]) for one in found["aup"])
