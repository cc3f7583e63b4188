"""Every page on every kind of store: no exception, what is wrong is said, hostile texts stay texts."""

from __future__ import annotations

import re

import pytest

from dare_eval.records.safe import visible
from tests.leaderboard.pages import TITLES, go, markup, opened, texts
from tests.leaderboard.stores import HOSTILE, STAMP

pytestmark = pytest.mark.xdist_group("board")


@pytest.fixture(autouse=True)
def fresh():
    import streamlit as st

    st.cache_resource.clear()


@pytest.mark.parametrize("kind", ["one", "many", "corrupt"])
def test_every_page_opens(place, kind):
    place(kind)
    app = opened()
    for address, title in TITLES.items():
        go(app, address)
        assert not app.exception, (kind, address, app.exception[0].value)
        assert [one.value for one in app.title] == [title]


def test_an_empty_store_says_what_to_type(place):
    place("empty")
    app = opened()
    assert not app.exception and app.title[0].value == "No runs yet"
    assert any("bash scripts/demo.sh" in text for text in texts(app))
    assert any("dare-eval index" in text for text in texts(app))


def test_no_store_at_all_is_not_made_by_looking(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("DARE_DB", "DARE_RUNS"):
        monkeypatch.delenv(name, raising=False)
    app = opened()
    assert app.title[0].value == "No runs yet" and list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_read_is_explained(monkeypatch, tmp_path):
    (tmp_path / "x.db").write_text("no database " * 200)
    monkeypatch.setenv("DARE_DB", f"sqlite:///{tmp_path}/x.db")
    app = opened()
    assert not app.exception and "cannot be opened" in " ".join(texts(app))


def test_pages_of_runs_without_any_result_say_so(monkeypatch, tmp_path):
    from dare_eval.records.manifest import RunManifest, write_manifest

    folder = tmp_path / "runs" / "bare" / STAMP
    write_manifest(folder, RunManifest(run_id="bare", kind="evaluation", status="failed"))
    (folder / "report.json").write_text("{")
    for name, value in (
        ("DARE_DB", f"sqlite:///{tmp_path}/x.db"),
        ("DARE_RUNS", tmp_path / "runs"),
        ("DARE_CACHE", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    app = opened()
    for address in TITLES:
        go(app, address)
        assert not app.exception, address
    assert "not readable JSON" in markup(go(app, "problems"))


def test_a_run_stored_while_the_board_is_open_is_compared_too(monkeypatch, tmp_path):
    from dare_eval.records.store import Store
    from tests.leaderboard.stores import items, write_run

    for name, value in (
        ("DARE_DB", f"sqlite:///{tmp_path}/x.db"),
        ("DARE_RUNS", tmp_path / "runs"),
        ("DARE_CACHE", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    write_run(tmp_path / "runs", "a", {"toy": items([True, False] * 20)}, model="a")
    app = opened()
    assert markup(app).count("dare-tie") == 1
    other = write_run(tmp_path / "elsewhere", "b", {"toy": items([False, True] * 20)}, model="b")
    Store().register_evaluation(other)
    app.run()
    assert markup(app).count("dare-tie") == 2 and "tie group 1: 2 results" in markup(app)


@pytest.mark.parametrize(
    ("address", "parameter"),
    [("run", "id"), ("items", "result"), ("denoising", "result"), ("stability", "result"), ("reproducibility", "run")],
)
def test_an_address_that_names_nothing_is_answered_with_a_warning(place, address, parameter):
    place("one")
    for wanted in ("99999", HOSTILE):
        app = go(opened(), address, **{parameter: wanted})
        assert not app.exception
        assert [one.value for one in app.warning] == ["The address names something that is not here."]
        assert any(text.startswith(f"{parameter}={wanted[:5]}") and "shown instead: R" in text for text in texts(app))
        app.run()
        assert not app.warning, "the address now names what is shown"


def test_a_choice_that_takes_back_an_earlier_one_is_no_wrong_address(place):
    place("many")
    app = go(opened(), "items", result="1")
    box = app.selectbox(key="items dataset")
    other = next(name for name in box.options if name != box.value)
    box.select(other).run()
    assert not app.exception and not app.warning and app.selectbox(key="items dataset").value == other


def test_results_show_interval_items_cost_spec_ties_and_links(place):
    place("one")
    app = opened()
    shown = markup(app)
    for part in ("n 20", "NFE 16", "tok/s", "16 steps", "block 8", 'href="items?result=1"', 'href="run?id=1"'):
        assert part in shown
    assert re.search(r"\d+\.\d–\d+\.\d", shown), "an interval"  # noqa: RUF001
    assert 'class="dare-tie first"' in shown


def test_filters_narrow_the_results(place):
    place("many")
    app = opened()
    before = markup(app)
    assert "llada-8b" in before and "dream-8b" in before
    app.multiselect(key="families").select("dream").run()
    assert not app.exception and "llada-8b" not in markup(app) and "dream-8b" in markup(app)
    app.text_input(key="name filter").input("nothing has this name").run()
    assert any("No result passes" in text for text in texts(app))
    app.text_input(key="name filter").input("").run()
    app.multiselect(key="families").set_value([]).run()
    app.checkbox(key="best of family").check().run()
    assert markup(app).count("<tr>") == 4 and "d1-2" in markup(app), "a head and three families"
    app.checkbox(key="all metrics").check().run()
    assert "cell" in markup(app) and not app.exception


def test_a_filter_that_leaves_fewer_pages_shows_the_last_of_them(place, monkeypatch):
    from leaderboard.data import overview

    monkeypatch.setattr(overview, "PAGE_ROWS", 2)
    place("many")
    app = opened()
    app.number_input(key="overview page").set_value(5).run()
    last = markup(app)
    app.multiselect(key="families").select("dream").run()
    assert not app.exception and "dream-8b" in markup(app) and "dream-8b" not in last
    app.text_input(key="name filter").input("dream-4").run()
    assert not app.exception and markup(app).count("dream-8b") == 1


def test_rows_can_be_ordered_by_a_benchmark(place):
    place("many")
    app = opened()
    app.selectbox(key="order").select("toy, accuracy").run()
    scores = [float(found) for found in re.findall(r'toy, accuracy %"><div><a[^>]*>([\d.]+)', markup(app))]
    assert scores == sorted(scores, reverse=True) and len(scores) > 5


def test_an_item_opens_from_its_address_with_prompt_response_rule_and_verdict(place):
    place("one")
    app = go(opened(), "items", result="1")
    shown = texts(app)
    assert "Question 0?" in shown and any(text.startswith("w0 w1") for text in shown)
    assert "last_number" in markup(app) and "reference" in markup(app)
    app.selectbox(key="items show").select("wrong").run()
    assert not app.exception and ">right<" not in markup(app)
    app.text_input(key="items text").input("Question 7?").run()
    assert any("1 of 20 items" in text or "0 of 20 items" in text for text in texts(app))


def test_two_runs_are_compared_item_by_item(place):
    place("many")
    app = go(opened(), "items")
    app.selectbox(key="items dataset").select("toy").run()
    compare = next(box for box in app.selectbox if box.label == "Compare with")
    compare.select_index(1).run()
    assert not app.exception and any("first:" in text and "second:" in text for text in texts(app))
    assert "dare-text" in markup(app) and any("second minus first" in text for text in texts(app))


def test_texts_of_models_are_never_markup(place):
    place("many")
    app = opened()
    app.text_input(key="name filter").input("cmd").run()
    for address in TITLES:
        go(app, address)
        assert "<script" not in markup(app) and "<b>model" not in markup(app)
    go(app, "items")
    app.selectbox(key="items dataset").select("toy").run()
    hostile = next(box for box in app.selectbox if box.label == "Result")
    hostile.select_index(next(i for i, name in enumerate(hostile.options) if "hostile" in name)).run()
    assert visible(HOSTILE) in texts(app), "shown whole, as code"
    assert "&lt;script&gt;" in markup(app) and "<script" not in markup(app)
    said = [one.value for one in app.markdown] + [one.value for one in app.caption]
    assert not any("alert" in text for text in said), "nothing of a model goes through Markdown"


def test_the_denoising_page_scrubs_through_forwards(place):
    place("many")
    app = go(opened(), "denoising")
    whole = markup(app)
    assert app.slider[0].max >= 1 and "masked" not in whole
    app.slider[0].set_value(0).run()
    assert not app.exception and "masked" in markup(app) and "fresh" in markup(app)


def test_quality_and_cost_has_areas_and_the_left_to_right_model(place):
    place("many")
    app = go(opened(), "pareto")
    app.selectbox(key="pareto column").select_index(next(
        i for i, name in enumerate(app.selectbox(key="pareto column").options) if name.startswith("toy")
    )).run()  # fmt: skip
    models = next(box for box in app.multiselect if box.label.startswith("Models"))
    models.set_value([]).run()
    assert not app.exception
    shown = markup(app)
    assert "llada-8b, quota" in shown and "left to right · length 16" in shown
    assert re.search(r"\d of 3<", shown), "an area over the three settings of a sweep"


def test_algorithms_pool_seeds_and_show_what_was_unequal(place):
    place("many")
    app = go(opened(), "algorithms")
    shown = markup(app)
    assert "d1 minus base" in shown and "spg minus d1" in shown and "d1 better" in shown
    assert "optimizer steps" in shown and ">unequal<" in shown and ">equal<" in shown
    assert any("2 lines" in text or "3 lines" in text for text in texts(app)), "half lines of the logs are counted"


def test_reproducibility_judges_two_runs_and_reads_saved_reports(place):
    place("corrupt")
    app = go(opened(), "reproducibility")
    assert not app.exception and any(one.value.startswith("Verdict") for one in app.subheader)
    assert any("not readable as JUnit" in text for text in texts(app))


def test_problems_names_everything_that_is_wrong(place):
    place("corrupt")
    app = opened()
    assert any("problems with runs" in text for text in texts(app))
    shown = markup(go(app, "problems"))
    for what in (
        "unknown version", "corrupt", "not a record", "half line", "run manifest is not readable JSON",
        "run manifest of an unknown version", "run manifest is missing", "2 folders share this id", "folder is gone",
        "item records are missing", "report row",
    ):  # fmt: skip
        assert what in shown, what


def test_damaged_lines_are_shown_where_their_items_are(place):
    folder = place("corrupt")
    app = go(opened(), "items")
    results = next(box for box in app.selectbox if box.label == "Result")
    results.select_index(next(i for i, name in enumerate(results.options) if f"bad-lines/{STAMP}" in name)).run()
    assert any("lines of the record file are no usable record" in one.label for one in app.expander)
    assert any("no json <b>" in text for text in texts(app)) and folder.exists()
