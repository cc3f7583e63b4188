"""Published numbers: every table of the sources is there, and the noise of each is said."""

import ast

import pytest

from dare_eval.errors import DataError, UsageError
from dare_eval.presets import models, rows
from dare_eval.presets.cards import find_card, known_cards, tables
from dare_eval.presets.catalog import known_benchmarks
from dare_eval.records.runs import load_run
from dare_eval.report.published import (
    baseline_of_card,
    below_trivial,
    differences,
    published_interval,
    unpaired_interval,
    unpaired_p,
)
from dare_eval.report.reproducibility import report_run, verdict_of


def test_the_noise_of_the_reference_table_on_humaneval_swallows_every_difference():
    found = [one for one in differences(tables()["dare-llada"]) if one.benchmark == "humaneval"]
    assert len(found) == 6 and not any(one.outside for one in found)
    assert min(one.p for one in found) == pytest.approx(0.32, abs=0.005)  # VRPO, 52.4 against 46.9
    assert all(one.low < 0 < one.high for one in found)


def test_clear_gains_stay_and_close_ones_do_not():
    found = {(one.benchmark, one.column): one for one in differences(tables()["dare-llada"])}
    assert found["gsm8k", "cj_grpo"].outside and found["countdown", "coupled_grpo"].outside
    assert not found["mbpp", "vrpo"].outside
    assert found["math", "coupled_grpo"].depends, "MATH: 500 or 5,000 items, the source does not say"
    assert unpaired_p(0.856, 0.853, 1319) == pytest.approx(0.83, abs=0.005)


def test_every_sudoku_score_of_the_table_is_below_filling_rows_at_random():
    table = tables()["dare-llada"]
    for column, score in zip(table.columns, table.rows["sudoku"], strict=True):
        assert below_trivial("sudoku", score) == [("row fill", 46.7)], column
    assert all(one.below == ("row fill",) for one in differences(table) if one.benchmark == "sudoku")
    assert below_trivial("sudoku", 46.7) == [] and below_trivial("gsm8k", 1.0) == []


@pytest.mark.parametrize(("a", "b", "n"), [(0.469, 0.524, 164), (0.1, 0.168, 256), (0.0, 0.5, 40), (1.0, 1.0, 9)])
def test_unpaired_p_is_the_chi_square_test_of_the_two_by_two_table(a, b, n):
    from scipy.stats import chi2_contingency

    table = [[a * n, n - a * n], [b * n, n - b * n]]
    expected = 1.0 if a == b else chi2_contingency(table, correction=False).pvalue
    assert unpaired_p(a, b, n) == pytest.approx(expected, rel=1e-9)


def test_unpaired_interval_is_newcombes():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for right_a, right_b, n in ((56, 48, 80), (9, 3, 10), (0, 12, 200)):
        expected = proportion.confint_proportions_2indep(right_a, n, right_b, n, method="newcomb")
        assert unpaired_interval(right_a / n, right_b / n, n) == pytest.approx(expected, abs=1e-9)


def test_every_scored_preset_is_a_card_and_tables_are_complete():
    cards = known_cards()
    for model in models():
        for preset in rows(model):
            assert (f"{model}/{preset.benchmark}" in cards) == (preset.score is not None)
    assert len({card.name for card in cards.values()}) == len(cards)
    for table in tables().values():
        assert table.base in table.columns
        assert all(len(scores) == len(table.columns) for scores in table.rows.values())
        assert {f"{table.name}/{bench}@{column}" for bench in table.rows for column in table.columns} <= set(cards)
    assert cards["llada-8b-instruct/gsm8k"].decimals == 1 and cards["dream-7b-instruct/mbpp"].decimals == 2


@pytest.mark.parametrize("card", known_cards().values(), ids=lambda card: card.name)
def test_every_card_has_score_source_and_settings_that_can_run_or_says_so(card):
    assert 0 <= card.score <= 100 and card.source
    assert round(card.score, card.decimals) == card.score
    if card.n:
        low, high = published_interval(card.score, card.n)
        assert 0 <= low <= card.score <= high <= 100
    if card.runnable and not card.likelihood:
        from dare_eval.networks import read_config, resolve_model_path
        from dare_eval.spec import DecodeSpec
        from tests.test_presets import family

        own = family(card.model) if card.config is None else read_config(resolve_model_path(card.model)).family
        assert DecodeSpec.build(own, **card.spec).gen_length


def test_unknown_cards_name_the_nearest():
    with pytest.raises(UsageError, match="llada-8b-instruct/gsm8k"):
        find_card("llada-8b-instruct/gsm8")


def test_a_run_is_judged_against_a_card_by_what_the_card_states(make_run):
    import dataclasses

    card = dataclasses.replace(find_card("llada-8b-instruct/gsm8k"), score=66.7, spec={"steps": 8})
    right = [k % 3 != 0 for k in range(60)]
    same = load_run(make_run("a", right, dataset="gsm8k"))
    assert verdict_of([report_run(same, baseline_of_card(card, same))]) == "match"
    other = load_run(make_run("b", right, dataset="gsm8k", spec={"steps": 4}))
    report = report_run(other, baseline_of_card(card, other))
    assert verdict_of([report]) == "off" and "steps 8 -> 4" in report.judgements[0].reason
    far = dataclasses.replace(card, score=20.0)
    assert verdict_of([report_run(same, baseline_of_card(far, same))]) == "off"
    near = dataclasses.replace(card, score=70.0)
    assert verdict_of([report_run(same, baseline_of_card(near, same))]) == "within interval"


def test_of_several_models_the_one_of_the_card_is_judged(make_run):
    from dare_eval.records.item_files import write_items
    from tests.records.record_kit import records

    card = find_card("tiny-sudoku/sudoku4")
    folder = make_run("a", [True] * 9 + [False], model="tiny-sudoku", dataset="sudoku4", entry={"metric": "exact"})
    write_items(folder / "records" / "other" / "countdown3.jsonl", records([False] * 5, dataset="countdown3"))
    (number,) = baseline_of_card(card, load_run(folder)).numbers
    assert number.key == ("tiny-sudoku", "sudoku4", "exact")


def test_a_run_that_cannot_be_what_the_card_measures_is_refused(make_run):
    run = load_run(make_run("a", [True, False]))
    with pytest.raises(DataError, match="nothing in this run"):
        baseline_of_card(find_card("llada-8b-instruct/sudoku"), run)


def test_cards_of_shipped_models_are_of_the_weights_that_ship():
    from dare_eval.networks import resolve_model_path
    from dare_eval.networks.paths import packaged_models
    from dare_eval.records.provenance import weight_hash

    mine = [card for card in known_cards().values() if card.weights is not None]
    assert {card.model for card in mine} == set(packaged_models())
    for card in mine:
        assert weight_hash(resolve_model_path(card.model)).startswith(card.weights), f"record {card.name} again"


def test_other_weights_than_the_cards_are_off_by_name(make_run):
    import dataclasses

    card = dataclasses.replace(find_card("tiny-sudoku/sudoku4"), score=50.0, spec={}, metric="exact")
    entry = {"metric": "exact"}
    run = load_run(make_run("a", [True, False], weight_hash=f"{card.weights}-and-more", entry=entry))
    assert verdict_of([report_run(run, baseline_of_card(card, run))]) == "match"
    other = load_run(make_run("b", [True, False], weight_hash="else", entry=entry))
    assert "weights" in report_run(other, baseline_of_card(card, other)).judgements[0].reason


RUNNABLE = [card for card in known_cards().values() if card.runnable and card.config is None]


@pytest.mark.parametrize("card", RUNNABLE, ids=lambda card: card.name)
def test_settings_reach_the_command_line_as_the_card_states_them(card, tmp_path):
    """``dare-eval reproduce`` is ``dare-eval run`` with every setting of the card."""
    from dare_eval.commands.reproduce import _changes
    from dare_eval.commands.run_models import Names, chosen_config

    names = Names([card.model], [str(card.bench)], (), _changes(card))
    config = chosen_config(None, names, tmp_path).read_text()
    found = {}
    for line in config.splitlines():
        key, _, value = line.partition(" = ")
        if key.startswith('models[0]["decoding"]['):
            found[key.split('"')[3]] = ast.literal_eval(value)
        elif key == 'models[0]["likelihood"]':
            found = ast.literal_eval(value)
    assert found == card.spec
    assert str(card.bench) in known_benchmarks()


def test_a_file_of_ones_own_is_a_card(make_run, dare, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("{model: m, bench: toy, score: 50.0, source: a paper, spec: {steps: 8}}")
    card = find_card(str(path))
    assert (card.name, card.score, card.decimals, card.source, card.n) == ("m/toy", 50.0, 1, "a paper", ())
    assert not card.runnable
    run = make_run("a", [True, False])
    assert dare("report", run, "--against", path)[0] == 0
    path.write_text("{model: m, bench: toy, score: 50.0, source: a paper, spec: {steps: 4}}")
    code, out = dare("report", run, "--against", path)
    assert code == 3 and "steps 4 -> 8" in out
    path.write_text("{model: m, bench: toy, score: 5, source: s, config: tiny_sudoku, spec: {}}")
    assert find_card(str(path)).runnable


KNOWN = "{model: m, bench: b, source: s, score: "


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "{",
        "{model: m}",
        KNOWN + ".nan}",
        KNOWN + "-.inf}",
        KNOWN + "true}",
        KNOWN + "x}",
        KNOWN + "1, steps: 3}",
        KNOWN + "1, spec: 3}",
        KNOWN + "1, n: many}",
        KNOWN + "1, decimals: x}",
        KNOWN + "1, weights: 12}",
        KNOWN + "1, likelihood: maybe}",
    ],
)
def test_files_that_are_no_card_are_data_errors(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(DataError):
        find_card(str(tmp_path / "c.yaml"))
    with pytest.raises(DataError):
        find_card(str(tmp_path / "nowhere.yaml"))
