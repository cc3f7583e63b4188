"""Names and values that no careful program writes: every run is kept or named, and nothing is lost or run."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from dare_eval.errors import DataError
from dare_eval.records.exports import FORMATS, export_text
from dare_eval.records.index import index_folders
from dare_eval.records.item_files import read_items
from dare_eval.records.manifest import DatasetEntry, ModelEntry, RunManifest, write_manifest
from dare_eval.records.runs import load_run
from dare_eval.records.safe import csv_cell, markdown_text
from dare_eval.records.store import Store, folder_stamp
from tests.records.record_kit import records

STAMP = "20260101_000000"
ODD = "odd \ud800 \x00"
NAMES = [
    "new\nline",
    "gl[ob]*?",
    "<img src=x onerror=alert(1)>",
    "right\u202eto left",
    "x" * 200,
    "'; drop table results;--",
    "%s",
    " ",
]


@pytest.fixture
def store(tmp_path):
    return Store(f"sqlite:///{tmp_path}/s.db")


def plain(folder: Path, model: str, dataset: str, result: object = None, config: str | None = None) -> Path:
    """Write a folder as plain OpenCompass leaves it; names may be no UTF-8."""
    prediction = {"0": {"origin_prompt": "Q", "prediction": "A", "gold": "1"}}
    for kind, value in (("predictions", prediction), ("results", {"accuracy": 100.0} if result is None else result)):
        path = folder / kind / model / f"{dataset}.json"
        path.parent.mkdir(parents=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    if config is not None:
        (folder / "configs").mkdir()
        (folder / "configs" / "a.py").write_text(config)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_plain_folders_with_odd_names_are_indexed_and_their_items_found(tmp_path, store, name):
    folder = plain(tmp_path / "runs" / f"r{name}" / STAMP, name, name)
    found = index_folders(store, tmp_path / "runs")
    assert (found.evaluations, found.problems) == (1, [])
    assert [(one.model, one.dataset, one.value) for one in store.results()] == [(name, name, 100.0)]
    assert len(load_run(Path(store.evaluations()[0].folder)).items(name, name).records) == 1
    assert index_folders(store, tmp_path / "runs").read == 0 and store.has_stamp(folder, folder_stamp(folder))


def test_a_folder_whose_name_is_no_text_is_named_and_the_others_are_indexed(tmp_path, store, cli):
    bad = os.fsdecode(b"bad\xff")
    plain(tmp_path / "runs" / bad / STAMP, "m", "d")
    plain(tmp_path / "runs" / "good" / STAMP, os.fsdecode(b"m\xfe"), "d")
    found = index_folders(store, tmp_path / "runs")
    assert len(found.problems) == 1 and "not UTF-8" in found.problems[0] and found.read == 1
    assert [one.model for one in store.results()] == ["m\\udcfe"]
    done = cli("dare-eval", "index", tmp_path / "runs", "--db", f"sqlite:///{tmp_path}/t.db")
    assert done.returncode == 4 and "not UTF-8" in done.stderr and "bad\\udcff" in done.stderr
    assert "Traceback" not in done.stderr


def test_texts_that_no_database_takes_are_stored_escaped(tmp_path, store, cli):
    maker = ModelEntry(name="model", family=ODD, weight_hash=ODD, decode_specs={"toy": {"policy": ODD}})
    facts = {"metric": ODD, "template": ODD, "scorer": ODD, "subset": ODD}
    run = RunManifest(
        run_id=ODD, kind="evaluation", status=ODD, started=ODD, finished=ODD, models=(maker,),
        datasets=(DatasetEntry(name="toy", **facts),), environment={"device": ODD}, seeds={ODD: 1},
    )  # fmt: skip
    from dare_eval.records.item_files import write_items

    folder = tmp_path / "runs" / "a" / STAMP
    write_items(folder / "records" / "model" / "toy.jsonl", records([True, False], response=ODD, extracted=ODD))
    write_manifest(folder, run)
    model = tmp_path / "runs" / "c" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"x")
    trained = ModelEntry(name=ODD, family=ODD, parent=ODD, parent_hash=ODD, algorithm=ODD)
    write_manifest(model.parent, RunManifest(run_id=ODD, kind="training", models=(trained,)))
    for read in (1, 0):
        found = index_folders(store, tmp_path / "runs")
        assert (found.evaluations, found.read, found.checkpoints, found.problems) == (1, read, 1, [])
    kept = store.evaluations()[0]
    assert kept.run_id == kept.status == kept.started == "odd \\ud800 \\x00" and kept.manifest["run_id"] == ODD
    assert store.checkpoints()[0].parent_hash == "odd \\ud800 \\x00" and store.results()[0].value == 50.0
    for style in FORMATS:
        assert export_text(store.results(), style, runs={1: ODD}).encode()
        done = cli("dare-eval", "export", style, "--db", f"sqlite:///{tmp_path}/s.db")
        assert done.returncode == 0 and "50" in done.stdout, done.stderr
    for kind in ("runs", "checkpoints"):
        assert cli("dare-eval", "ls", kind, "--db", f"sqlite:///{tmp_path}/s.db").returncode == 0


def test_a_manifest_opens_no_file_outside_its_run(tmp_path, store, make_run):
    folder = make_run("a", [True, False])
    secret = tmp_path / "secret.jsonl"
    secret.write_text("secret\n")
    specs = {f"../../../../../{secret.stem}": {"steps": 1}, str(secret.with_suffix("")): {"steps": 1}}
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["models"].append({"name": "model", "decode_specs": specs})
    manifest["models"].append({"name": "nul\x00", "decode_specs": {"d": {"steps": 1}}})
    manifest["models"].append({"name": "x" * 300, "decode_specs": {"d": {"steps": 1}}})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    store.register_evaluation(folder)
    rows = {(one.model, one.dataset): one for one in store.results()}
    assert len(rows) == 5 and rows["model", "toy"].value == 50.0
    for name in specs:
        assert rows["model", name].n == 0 and "leads out of the run's folder" in rows["model", name].labels[0]
    assert "cannot be read" in str(rows["nul\\x00", "d"].labels) and "cannot be read" in str(
        rows["x" * 300, "d"].labels
    )
    with pytest.raises(DataError, match="leads out"):
        load_run(folder).items("model", next(iter(specs)))
    with pytest.raises(DataError, match="cannot be read"):
        read_items(tmp_path)


@pytest.mark.parametrize("result", [
    '{"accuracy": 1e999}', '{"accuracy": ' + "9" * 400 + "}", '{"details": {"\u00b2": {"correct": true}}}',
    '{"details": {"' + "9" * 5000 + '": {}}}', '{"details": {"0": {"__repeats__": "x", "correct": true}}}',
])  # fmt: skip
def test_numbers_that_are_none_are_no_obstacle(tmp_path, store, result):
    plain(tmp_path / "runs" / "a" / STAMP, "m", "d", result)
    assert index_folders(store, tmp_path / "runs").problems == [] and len(store.results()) == 1


@pytest.mark.parametrize("config", [
    "models = [{[1]: 2}]", "models = [dict(abbr='m', path=b'x', batch_size=...)]", "models = " + "+".join(["a"] * 5000),
    "models = [dict(abbr='m', path='p', batch_size=dict(a=1j))]", "models = 3", "\x00",
])  # fmt: skip
def test_configs_that_are_none_are_no_obstacle(tmp_path, store, config):
    folder = plain(tmp_path / "runs" / "a" / STAMP, "m", "d", config=config)
    (folder / "summary" / "s.csv").mkdir(parents=True)
    (folder / "summary" / "t.csv").write_text("dataset,version\nd," + "x" * 200_000 + "\n")
    assert index_folders(store, tmp_path / "runs").problems == [] and store.results()[0].n == 1


def test_formulas_of_every_format_stay_text():
    for text in ("=1+1", "\uff1d1+1", "\uff0b1"):
        assert csv_cell(text) == "'" + text
    assert csv_cell("a\ud800") == "a\\ud800"
    assert markdown_text("$x$ ~~y~~ &lt; ![i](u)") == r"\$x\$ \~\~y\~\~ \&lt; !\[i\](u)"


def test_latex_rows_take_no_options_from_a_name(make_run, store):
    for name in ("[2cm]", "*"):
        store.register_evaluation(make_run(f"r{name}", [True, False], model=name))
    found = export_text(store.results(), "latex")
    assert "\n{}[2cm] & " in found and "\n{}* & " in found
    rows = list(csv.reader(io.StringIO(export_text(store.results(), "csv"))))
    assert [row[1] for row in rows[1:]] == ["[2cm]", "*"]
