"""Texts of strangers on every page: whatever they hold, they are shown, nothing of them runs, no page fails."""

from __future__ import annotations

import json
import re
import sys

import pytest

from dare_eval.records.manifest import ModelEntry, RunManifest, write_manifest
from dare_eval.records.provenance import weight_hash
from dare_eval.records.safe import visible
from dare_eval.records.store import Store
from tests.leaderboard.pages import TITLES, go, markup, opened, texts
from tests.leaderboard.stores import SPEC, STAMP, items, write_checkpoint, write_run
from tests.leaderboard.test_markup import read

pytestmark = pytest.mark.xdist_group("board")
NASTY = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)></pre></style><!--",
    "markdown": "[a](javascript:alert(1)) ![i](http://x/y.png) $\\frac{1}{2}$ :material/delete: :red[hot] `code` **b**",
    "controls": "nul \x00 bell \x07 esc \x1b[31m carriage \r line\u2028end \x85",
    "direction": "right \u202eto\u2066left zero\u200bwidth \ufeffmark",
    "formula": "=cmd|' /C calc'!A0",
    "halves": "lone \ud800 and \udfff",
    "lines": "first\nsecond\n  third",
    "percent": "%{x} %s {0} {{}} \\",
}
KEPT = "a\u00a0b\u3000\u4e2d\u6587 \u0645\u06cc\u200c\u062e \U0001f468\u200d\U0001f469 e\u0301"


@pytest.fixture(autouse=True)
def fresh():
    import streamlit as st

    st.cache_resource.clear()


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Fill a store in which every text of every file is hostile; file names too, as far as a file can be called so."""
    root = tmp_path / "runs"
    for number, (name, text) in enumerate(NASTY.items()):
        called = visible(text).replace("/", "-").replace("\n", " ")[:80]
        spec = SPEC | {"policy": text, "steps": 4 + number}
        fields = {"response": text * 2, "extracted": text, "prompt": text, "reference": {text: [text]}, "rule": text,
                  "stop": text, "detail": {text: text}, "extra": {"of others": text}}  # fmt: skip
        entry = {"metric": text, "graded_metric": f"credit {text}", "template": text, "scorer": text, "subset": text}
        records = items([True, False] * 10, called, nfe=4 + number, **fields)
        place = write_checkpoint(root, f"c{number}", "d1", 1)
        of = ModelEntry(name=text, family=text, algorithm=text, parent=text, parent_hash=f"hash {text}")
        write_manifest(place.parent, RunManifest(run_id=text, kind="training", models=(of,), config={"x": text}))
        (place.parent / "metrics.jsonl").write_text(json.dumps({"step": 1, text: 1, "loss": 10**400}) + "\n")
        maker = {"family": text, "weight_hash": weight_hash(place)}
        content = {called: records}
        folder = write_run(root, f"{name} {called}", content, model=f"model {called}", spec=spec, entry=entry, **maker)
        (folder / "failures").mkdir()
        failed = {"model": f"model {called}", "dataset": called, "stage": text, "cause": text}
        (folder / "failures" / "f.json").write_text(json.dumps(failed))
        with (folder / "records" / f"model {called}" / f"{called}.jsonl").open("a") as stream:
            stream.write(json.dumps({"version": text}) + "\n")
    for name, value in (("DARE_DB", f"sqlite:///{tmp_path}/x.db"), ("DARE_RUNS", root), ("DARE_CACHE", tmp_path)):
        monkeypatch.setenv(name, str(value))
    from dare_eval.records.index import index_folders

    found = index_folders(Store(), root)
    assert found.problems == [] and found.evaluations == len(NASTY) == found.checkpoints
    return root


def assert_shown(app) -> None:
    """Check that the page opened, that its HTML holds no element of a stranger, and that nothing goes as Markdown."""
    assert not app.exception, app.exception[0].value
    for tag, attributes in read(markup(app)).tags:
        assert tag not in ("script", "img", "style", "pre"), tag
        assert not any(name.startswith("on") for name, _ in attributes)
        assert all(value is None or not value.startswith("javascript:") for name, value in attributes if name == "href")
    read_as_markdown = [*app.markdown, *app.caption, *app.title, *app.subheader, *app.info, *app.warning]
    said = " ".join(
        [str(one.value) for one in read_as_markdown] + [box.label for box in (*app.expander, *app.selectbox)]
    )
    assert not any(word in said for word in ("alert(", "frac", ":red[", "cmd|", "lone"))


def test_every_page_shows_hostile_texts_as_texts(hostile):
    app = opened()
    for address in TITLES:
        assert_shown(go(app, address))
    assert "&lt;script&gt;" in markup(go(app, "")) and "&lt;U+202E&gt;" in markup(app)


@pytest.mark.parametrize("name", NASTY)
def test_an_item_with_hostile_texts_opens_whole(hostile, name):
    text = NASTY[name]
    app = go(opened(), "items", result=str(result_of(name)))
    assert_shown(app)
    assert texts(app).count(visible(text)) >= 1, "the prompt"
    assert visible(text * 2) in texts(app), "the response"
    if name in ("markup", "formula"):
        assert text in "".join(read(markup(app)).texts), "the answer found"


@pytest.mark.parametrize("address", ["run", "denoising", "stability", "reproducibility", "algorithms", "pareto"])
def test_every_choice_of_a_page_can_be_made(hostile, address):
    app = go(opened(), address)
    count = len(app.selectbox[0].options)
    assert count > 1, "there is a choice"
    for number in range(count):
        app.selectbox[0].select_index(number).run()
        assert_shown(app)


def test_filters_take_hostile_names(hostile):
    app = opened()
    for key in ("families", "benchmarks", "policies"):
        options = list(app.multiselect(key=key).options)
        assert options, key
        for option in options:
            app.multiselect(key=key).set_value([option]).run()
            assert_shown(app)
            assert len(app.multiselect(key=key).value) == 1
        app.multiselect(key=key).set_value([]).run()


def test_static_pages_and_downloads_hold_hostile_texts_as_texts(hostile, cli, tmp_path):
    done = cli("dare-eval", "board", "--static", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "site").rglob("*.html"):
        found = read(path.read_text())
        assert not {tag for tag, _ in found.tags} & {"script", "img"}, path.name
    assert not any(
        line.startswith(("=", "+", "@")) for line in (tmp_path / "site" / "results.csv").read_text().split("\n")
    )


def test_runs_of_one_id_and_items_of_one_number_can_each_be_opened(tmp_path, monkeypatch):
    same = [{"index": -1, "extracted": "1", "prompt": f"only {n}", "correct": True, "value": 1.0} for n in range(3)]
    for name in ("a", "b"):
        records = [one for n, fields in enumerate(same) for one in items([True] * (n + 1), **fields)[n:]]
        folder = write_run(tmp_path / "runs", name, {"toy": records})
        record = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(record | {"run_id": "twin"}))
    for key, value in (("DARE_DB", f"sqlite:///{tmp_path}/x.db"), ("DARE_RUNS", tmp_path / "runs")):
        monkeypatch.setenv(key, str(value))
    monkeypatch.setenv("DARE_CACHE", str(tmp_path))
    app = go(opened(), "run")
    folders = set()
    for number in range(2):
        app.selectbox[0].select_index(number).run()
        folders |= set(re.findall(r">folder</td><td[^>]*>[^<]*/runs/(\w)/", markup(app)))
    assert folders == {"a", "b"} and "twin (no. 2 of 2)" in app.selectbox[0].options
    go(app, "items")
    prompts = set()
    for number in range(3):
        box = next(one for one in app.selectbox if one.label == "Open item")
        box.select_index(number).run()
        prompts |= {text for text in texts(app) if text.startswith("only ")}
    assert prompts == {"only 0", "only 1", "only 2"}


def test_an_answer_of_a_megabyte_and_impossible_forwards_open(tmp_path, monkeypatch):
    long = ("word " * 9 + "\n") * 20_000
    records = items([True, False], response=long, prompt=long, extracted=long)
    records += items([True] * 3, step_map=(2**40,) * 9, tokens=(1,) * 9, nfe=2**31 - 1)[2:]
    for name in ("a", "b"):
        write_run(tmp_path / "runs", name, {"toy": records}, model=name)
    for key, value in (("DARE_DB", f"sqlite:///{tmp_path}/x.db"), ("DARE_RUNS", tmp_path / "runs")):
        monkeypatch.setenv(key, str(value))
    monkeypatch.setenv("DARE_CACHE", str(tmp_path))
    app = opened()
    for address in TITLES:
        assert_shown(go(app, address))
    go(app, "items", result="1", other="2")
    next(box for box in app.selectbox if box.label == "Show").select("both right").run()
    assert_shown(app)
    assert any("word " * 9 in text for text in texts(app)), "the answer stands on the page"
    go(app, "denoising")
    next(box for box in app.selectbox if box.label == "First item").select_index(2).run()
    assert_shown(app)


def test_numbers_too_long_for_an_address_are_answered_with_a_warning(place):
    place("one")
    app = go(opened(), "items", result="9" * 5000)
    assert not app.exception and app.warning


def test_what_is_written_out_is_what_would_act_and_nothing_else():
    assert visible(KEPT) == KEPT
    assert visible("a\r\nb\tc") == "a\nb\tc" and visible("\r") == "<U+000D>"
    acting = [chr(code) for code in range(sys.maxunicode + 1) if visible(chr(code)) != chr(code)]
    assert {"\x00", "\x1b", "\x9b", "\u202e", "\u2066", "\u200b", "\ud800", "\U000e0041"} <= set(acting)
    assert not {"\n", "\t", " ", "\u00a0", "\u3000", "\u200d"} & set(acting) and len(acting) < 2400


def result_of(name: str) -> int:
    """Return the id of the first result of the run called ``name``."""
    store = Store()
    run = next(one.id for one in store.evaluations() if f"/{name} " in one.folder and STAMP in one.folder)
    return next(one.id for one in store.results() if one.evaluation_id == run)
