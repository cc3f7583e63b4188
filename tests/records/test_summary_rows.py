import dataclasses

import pytest

from dare_eval.errors import DataError
from dare_eval.records.cost import cost_of, generated_tokens
from dare_eval.records.items import ItemRecord
from dare_eval.records.stats import bootstrap, clustered, wilson
from dare_eval.records.summary import ResultRow, read_report, summarise, write_report
from dare_eval.scoring import UNPARSABLE_GOLD


def record(number, *, correct=True, value=None, **fields):
    fields.setdefault("extracted", "x")
    return ItemRecord(
        item_id=f"{number:04d}", correct=correct, value=float(correct or 0) if value is None else value, **fields
    )


def row_of(records, **settings):
    return summarise(records, model="m", dataset="d", **settings)


def test_accuracy_has_wilsons_interval_and_counts():
    records = [record(n, correct=n < 30) for n in range(50)]
    row = row_of(records, expected=50)
    expected = wilson(30, 50)
    assert (row.value, row.low, row.high) == (60.0, 100 * expected.low, 100 * expected.high)
    assert (row.n, row.expected, row.method, row.complete) == (50, 50, "wilson", True)


def test_graded_credit_has_a_bootstrap_interval_that_ignores_file_order():
    records = [record(n, correct=False, value=n / 60) for n in range(50)]
    row = row_of(records, graded=True)
    expected = bootstrap([n / 60 for n in range(50)])
    assert (row.value, row.low, row.high) == pytest.approx(
        [100 * v for v in (expected.value, expected.low, expected.high)]
    )
    assert row_of(records[::-1], graded=True) == row
    assert row_of(records).value == 0.0


def test_repeats_are_clustered_by_question():
    records = [
        record(10 * q + r, correct=(q + r) % 3 == 0, question_id=f"q{q}", repeat=r) for q in range(12) for r in range(4)
    ]
    row = row_of(records)
    values = [float(r.correct) for r in sorted(records, key=lambda r: r.item_id)]
    expected = clustered(values, [r.question_id for r in sorted(records, key=lambda r: r.item_id)])
    assert row.method == "clustered" and row.low == pytest.approx(100 * expected.low)


def test_little_data_never_looks_certain():
    repeats = [record(n, question_id="q", repeat=n) for n in range(5)]
    assert (row_of(repeats).low, row_of(repeats).high) == (0.0, 100.0)
    assert row_of([record(0, correct=False, value=0.4)], graded=True).high == 100.0
    agreeing = [record(10 * q + r, question_id=f"q{q}", repeat=r) for q in range(3) for r in range(4)]
    assert row_of(agreeing).low == pytest.approx(100 * wilson(3, 3).low)


def test_what_was_not_scored_is_counted_beside_the_score():
    records = [
        record(0),
        record(1, correct=False, extracted=None),
        record(2, correct=None),
        record(3, correct=None, error="boom"),
        record(4, correct=None, unrecorded=True),
    ]
    row = row_of(records, expected=5)
    assert (row.n, row.value, row.errors, row.unscored, row.unrecorded) == (2, 50.0, 1, 1, 1)
    assert row.extraction_rate == 50.0 and not row.complete


def test_an_unusable_reference_is_counted_apart_and_is_no_wrong_answer():
    broken = record(2, correct=False, rule=UNPARSABLE_GOLD, extracted=None)
    row = row_of([record(0), record(1, correct=False), broken], expected=3)
    assert (row.n, row.value, row.unusable_golds, row.unscored, row.complete) == (2, 50.0, 1, 0, True)
    assert row.extraction_rate == 100.0
    assert ResultRow.from_dict(row.to_dict()) == row
    alone = row_of([broken], expected=1)
    assert (alone.n, alone.value, alone.complete) == (0, None, False)


def test_unrecorded_items_do_not_make_a_row_incomplete_but_missing_ones_do():
    records = [record(0), record(1, correct=None, unrecorded=True)]
    assert row_of(records, expected=2).complete
    assert not row_of(records, expected=3).complete
    assert not row_of([], expected=0).complete
    assert row_of([], expected=4).value is None


def test_costs_are_ratios_of_sums():
    records = [
        record(0, nfe=10, generated_tokens=40, wall_s=1.0, stop="eos"),
        record(1, nfe=30, generated_tokens=20, wall_s=2.0, stop="length"),
        record(2),
    ]
    row = row_of(records, decode_spec={"gen_length": 40})
    assert (row.nfe, row.tpf, row.tps, row.wall_s) == (20.0, 1.5, 20.0, 1.5)
    assert (row.truncated, row.eos_share) == (50.0, 25.0)


def test_costs_without_measurements_are_none_not_zero():
    row = row_of([record(0)])
    assert (row.nfe, row.tpf, row.tps, row.wall_s, row.truncated, row.eos_share) == (None,) * 6
    assert cost_of([record(0, nfe=0, generated_tokens=0, wall_s=0.0)]).tokens_per_forward is None


def test_generated_tokens_stop_before_the_first_end():
    assert generated_tokens([1, 2, 9, 3, 9], {9}) == 2
    assert generated_tokens([9], {9}) == 0 and generated_tokens([1, 2], {9, 8}) == 2 and generated_tokens([], {9}) == 0


def test_reports_give_back_their_rows(tmp_path):
    rows = [row_of([record(n, correct=n % 2 == 0) for n in range(9)], expected=9), row_of([], metric="cell")]
    path = write_report(tmp_path, rows)
    assert read_report(path) == rows
    needed = {"model", "dataset", "metric", "value", "low", "high", "n", "expected", "nfe", "tpf", "tps", "decode_spec"}
    assert needed <= {field.name for field in dataclasses.fields(ResultRow)}


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1]", '[{"model": "m"}]'])
def test_damaged_reports_are_data_errors(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(DataError):
        read_report(path)
