import csv
import io
import json

import pytest

from dare_eval.records.best import PairwiseTests, significant_best
from dare_eval.records.exports import FORMATS, export_text
from dare_eval.records.safe import csv_cell, one_line
from dare_eval.records.store import Store

LOW = [n % 10 == 0 for n in range(60)]
HIGH = [n % 10 != 0 for n in range(60)]
NEAR = [n % 10 not in (0, 1) for n in range(60)]


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path}/s.db")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_formulas_become_text(text):
    assert csv_cell(text) == "'" + text


@pytest.mark.parametrize("value", ["plain", "1-1", "", -1.5, 3, None, True])
def test_everything_else_stays(value):
    assert csv_cell(value) == value and type(csv_cell(value)) is type(value)


def test_one_line_hides_no_control_character():
    assert one_line("a\x1b[31mred\nb\x07") == "a\\x1b[31mred\\nb\\x07"
    assert one_line("x" * 100, 10) == "x" * 9 + "…" and one_line("日本") == "日本"


def test_csv_and_json_hold_every_number_and_no_formula(make_run, store):
    store.register_evaluation(make_run("a", HIGH, model="=cmd|' /C calc'!A0", dataset="<b>x</b>"))
    result = store.results()[0]
    row = next(csv.DictReader(io.StringIO(export_text([result], "csv", runs={result.evaluation_id: "@run"}))))
    assert row["model"] == "'=cmd|' /C calc'!A0" and row["run"] == "'@run" and row["dataset"] == "<b>x</b>"
    assert float(row["value"]) == result.value and float(row["low"]) == result.low and row["n"] == "60"
    assert json.loads(row["decode_spec"])["gen_length"] == 16
    found = json.loads(export_text([result], "json"))[0]
    assert found["model"] == "=cmd|' /C calc'!A0" and found["value"] == result.value and found["tps"] == 16.0


def test_markdown_and_latex_escape_and_footnote(make_run, store):
    store.register_evaluation(make_run("a", HIGH, model="m_1|<script>$%&#{}~^\\", spec={"threshold": 0.9}))
    store.register_evaluation(make_run("b", HIGH[:50], entry={"expected": 60}))
    found = store.results()
    markdown, latex = export_text(found, "markdown"), export_text(found, "latex")
    assert r"m\_1\|\<script\>" in markdown and "| 60 | 4 | 16 | a |" in markdown and "| 50 of 60 |" in markdown
    assert "a: n = 60; gen\\_length 16, block\\_length 8, steps 8, policy quota, threshold 0.9" in markdown
    assert (
        r"m\_1|\textless{}script\textgreater{}\$\%\&\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in latex
    )
    assert r"$\pm$" in latex and "^{a}" in latex and "^{b}" in latex and "threshold" in latex
    assert "$^{a}$ n = 60; gen" in latex and "$^{b}$ n = 50 of 60; gen" in latex
    assert "**" not in markdown and r"\textbf" not in latex


def test_bold_needs_a_significant_lead_over_every_other(make_run, store):
    for name, verdicts in (("low", LOW), ("high", HIGH)):
        store.register_evaluation(make_run(name, verdicts))
    low, high = store.results()
    assert significant_best([low, high], PairwiseTests(store)) == {high.id}
    assert "**90.00" in export_text([low, high], "markdown", {high.id})
    assert r"\textbf{90.00" in export_text([low, high], "latex", {high.id})
    store.register_evaluation(make_run("near", NEAR))
    near = store.results()[-1]
    assert significant_best([low, high, near], PairwiseTests(store)) == {high.id}
    store.register_evaluation(make_run("again", HIGH, weight_hash="hash-high"))
    assert significant_best(store.results(), PairwiseTests(store)) == {high.id}, "a rerun is no rival of itself"
    store.register_evaluation(make_run("same", HIGH[::-1]))
    assert significant_best(store.results(), PairwiseTests(store)) == set()
    assert significant_best([low], PairwiseTests(store)) == set()


def test_what_cannot_be_compared_is_never_bold(make_run, store):
    store.register_evaluation(make_run("low", LOW))
    store.register_evaluation(make_run("high", HIGH, entry={"template": "other"}))
    store.register_evaluation(make_run("plain", LOW, entry={"template": "x"}))
    assert significant_best(store.results(), PairwiseTests(store)) == set()


def test_pairwise_tests_are_computed_once(make_run, store, monkeypatch):
    from dare_eval.records import best

    for name, verdicts in (("low", LOW), ("high", HIGH)):
        store.register_evaluation(make_run(name, verdicts))
    low, high = store.results()
    first = PairwiseTests(store).test(low, high)
    monkeypatch.setattr(best, "compare_results", None)
    again = PairwiseTests(store).test(low, high)
    assert (again.p, again.delta, again.wins) == (first.p, first.delta, first.wins)


@pytest.mark.parametrize("style", FORMATS)
def test_an_empty_store_exports(style):
    assert isinstance(export_text([], style), str)
