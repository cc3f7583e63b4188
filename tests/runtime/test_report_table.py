"""What a row of the results table says beside its score."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dare_eval.records.items import ItemRecord
from dare_eval.records.summary import summarise
from dare_eval.scoring import UNPARSABLE_GOLD

pytestmark = pytest.mark.xdist_group("opencompass")


def shown(records, *, colour=False):
    from dare_eval.runtime.report_rows import PairReport
    from dare_eval.runtime.report_table import show_table

    spec = {"gen_length": 8}
    row = summarise(records, model="m", dataset="d", expected=len(records), decode_spec=spec)
    report = PairReport(
        "m", "d", [row], None, {"status": "not run", "metric": "", "value": None}, None, has_result=True
    )
    out = io.StringIO()
    show_table(
        Console(file=out, width=240, force_terminal=colour, color_system="standard" if colour else None), [report]
    )
    return out.getvalue()


def items(count, unparsed):
    return [
        ItemRecord(
            item_id=f"{i:03d}", correct=i >= unparsed, extracted=None if i < unparsed else "1", rule="box",
            generated_tokens=4, nfe=8, wall_s=0.1, stop="length" if i < 25 else "eos",
        )
        for i in range(count)
    ]  # fmt: skip


def test_more_than_two_percent_without_an_answer_is_said_in_words_and_in_red():
    assert "no answer found in 3.0 % (limit 2)" in shown(items(100, 3))
    assert "\x1b[31mno answer found in 3.0 % (limit 2)" in shown(items(100, 3), colour=True)
    assert "no answer found" not in shown(items(100, 2))
    assert "\x1b[31m" not in shown(items(100, 2), colour=True)


def test_truncation_and_padding_shares_and_unusable_references_stand_beside_the_score():
    gold = ItemRecord(item_id="x", correct=False, rule=UNPARSABLE_GOLD)
    text = shown([*items(100, 0), gold])
    assert "cut by length 25.0" in text and "padding 50.0" in text
    assert "1 unusable references" in text and "100/101" in text


def test_disputed_items_are_counted_beside_the_score(tmp_path):
    from dare_eval.records.item_files import write_items
    from dare_eval.runtime.report_rows import pair_report
    from dare_eval.runtime.report_table import show_table

    given = [(True, True), (True, False), (False, True), (False, None), (None, True), (False, False)]
    found = [ItemRecord(item_id=f"{i}", correct=a, upstream_correct=b) for i, (a, b) in enumerate(given)]
    assert [record.disputed for record in found] == [False, True, True, False, False, False]
    (tmp_path / "records" / "m").mkdir(parents=True)
    write_items(tmp_path / "records" / "m" / "d.jsonl", found)
    report = pair_report(tmp_path, "m", "d")
    out = io.StringIO()
    show_table(Console(file=out, width=300), [report])
    assert report.disputed == 2
    assert "2 verdicts differ from the stock" in out.getvalue()
    assert "verdicts differ" not in shown(items(4, 0))
