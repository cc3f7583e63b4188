import dataclasses
import json
import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.records import database
from dare_eval.records.database import HEAD, migrate, open_engine, schema_version
from dare_eval.records.index import find_folders, index_folders
from dare_eval.records.item_files import ItemWriter
from dare_eval.records.listing import checkpoint_lines, run_lines
from dare_eval.records.manifest import ModelEntry, RunManifest, write_manifest
from dare_eval.records.stats import paired_binary
from dare_eval.records.store import Store, spec_digest
from dare_eval.records.tables import Base
from dare_eval.spec import DecodeSpec
from tests.records.record_kit import records

A = [n % 3 == 0 for n in range(30)]
B = [n % 3 != 1 for n in range(30)]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store/dare.db"


def rows_of(store):
    """Return all content apart from ids and times of registration, so that two stores can be compared."""
    found = []
    for evaluation in store.evaluations(all_states=True):
        own = [r for r in store.results(all_states=True) if r.evaluation_id == evaluation.id]
        plain = [(r.model, r.dataset, r.metric, r.row, r.settings, r.labels, r.spec_digest, r.weight_hash) for r in own]
        facts = (evaluation.folder, evaluation.digest, evaluation.origin, evaluation.status, evaluation.manifest)
        found.append(json.dumps([facts, evaluation.labels, sorted(plain, key=str)], sort_keys=True))
    checkpoints = [(c.name, c.folder, c.weight_hash, c.algorithm, c.parent, c.labels) for c in store.checkpoints()]
    return sorted(found), sorted(checkpoints, key=str)


def checkpoint(folder: Path, content: bytes = b"w", **entry):
    (folder / "model").mkdir(parents=True, exist_ok=True)
    (folder / "model" / "model.safetensors").write_bytes(content)
    (folder / "model" / "config.json").write_text("{}")
    write_manifest(folder, RunManifest(run_id=folder.name, kind="training", models=(ModelEntry(**entry),)))
    return folder / "model"


def test_a_run_is_registered_once_and_a_changed_one_again(make_run, url):
    store, run = Store(url), make_run("a", A)
    first = store.register_evaluation(run)
    assert store.register_evaluation(run) == first
    (run / "manifest.json").touch()
    assert store.register_evaluation(run) == first and len(store.evaluations(all_states=True)) == 1
    with ItemWriter(run / "records" / "model" / "toy.jsonl") as writer:
        writer.append(dataclasses.replace(records(A)[1], correct=True, value=1.0))
    second = store.register_evaluation(run)
    assert second != first
    assert [e.id for e in store.evaluations(all_states=True)] == [first, second]
    assert [e.id for e in store.evaluations()] == [second]
    assert [round(r.value, 2) for r in store.results(all_states=True)] == [33.33, 36.67]
    assert [r.evaluation_id for r in store.results()] == [second]


def test_results_hold_score_interval_cost_spec_and_settings(make_run, url):
    store = Store(url)
    store.register_evaluation(make_run("a", A), strict=True)
    found = store.results()[0]
    assert (found.n, found.expected, found.nfe, found.tpf, found.tps) == (30, 30, 4.0, 2.0, 16.0)
    assert found.low < found.value < found.high and found.row["decode_spec"]["gen_length"] == 16
    assert found.settings["prompt_hash"] == "ph" and found.weight_hash == "hash-a" and found.labels == []
    assert store.results(weight_hash="hash-a")[0].id == found.id and store.results(weight_hash="else") == []


def test_spec_digest_is_the_digest_of_the_spec():
    spec = DecodeSpec.build("llada", gen_length=16, block_length=8, steps=8)
    assert spec_digest(spec.to_dict()) == spec.digest()


def test_a_score_without_its_spec_is_refused_when_strict_and_labelled_when_indexed(make_run, url, change_manifest):
    store, run = Store(url), make_run("a", A)
    change_manifest(run, models=(ModelEntry(name="model"),))
    with pytest.raises(DataError, match="without its decode spec"):
        store.register_evaluation(run, strict=True)
    store.register_evaluation(run)
    assert store.results()[0].labels == ["decode spec unknown"]


@pytest.mark.parametrize("text", [None, "{", '{"version": 99}'])
def test_runs_without_a_readable_manifest_are_kept_with_what_is_wrong(make_run, url, text):
    store, run = Store(url), make_run("a", A)
    (run / "manifest.json").unlink()
    if text is not None:
        (run / "manifest.json").write_text(text)
    store.register_evaluation(run)
    found = store.results()[0]
    assert (
        found.value == pytest.approx(100 / 3)
        and "manifest" in found.labels[0]
        and "decode spec unknown" in found.labels
    )
    assert store.evaluations()[0].status == "unknown"


def test_unreadable_lines_are_counted_in_the_labels(make_run, url):
    store, run = Store(url), make_run("a", A)
    with (run / "records" / "model" / "toy.jsonl").open("a") as stream:
        stream.write('{"version":7}\n<script>\n')
    store.register_evaluation(run)
    assert [label.split(":")[1].strip() for label in store.results()[0].labels] == ["unknown version", "corrupt"]


def test_planned_results_without_records_are_rows_of_their_own(make_run, url, change_manifest):
    store, run = Store(url), make_run("a", A)
    change_manifest(run, models=(ModelEntry(name="model", decode_specs={"toy": {"x": 1}, "gone": {"x": 1}}),))
    store.register_evaluation(run)
    found = {r.dataset: r for r in store.results()}
    assert (found["gone"].n, found["gone"].value) == (0, None) and found["gone"].labels == ["item records are missing"]


def test_failures_of_a_result_are_its_labels(make_run, url):
    store, run = Store(url), make_run("a", A)
    (run / "failures").mkdir()
    failure = {"model": "model", "dataset": "toy", "stage": "infer", "cause": "ValueError: <b>boom</b>"}
    (run / "failures" / "one.json").write_text(json.dumps(failure))
    (run / "failures" / "other.json").write_text(json.dumps(failure | {"dataset": "else"}))
    (run / "failures" / "bad.json").write_text("{")
    store.register_evaluation(run)
    labels = store.results()[0].labels
    assert labels[1] == "failed (infer): ValueError: <b>boom</b>" and "bad.json" in labels[0] and len(labels) == 2


def test_report_only_metrics_are_kept_and_say_so(make_run, url):
    store, run = Store(url), make_run("a", A)
    base = {"low": None, "high": None, "n": 5, "expected": 5, "nfe": None, "tpf": None, "tps": None, "decode_spec": {}}
    rows = [
        {"model": "model", "dataset": "toy", "metric": "accuracy", "value": 99.0, **base},
        {"model": "model", "dataset": "ppl", "metric": "perplexity", "value": 7.5, **base},
    ]
    (run / "report.json").write_text(json.dumps(rows))
    store.register_evaluation(run)
    found = {r.dataset: r for r in store.results()}
    assert found["toy"].value == pytest.approx(100 / 3), "item records are the truth"
    assert (found["ppl"].value, found["ppl"].labels) == (7.5, ["from report.json; no item records"])
    (run / "report.json").write_text('[{"model": 1}]')
    store.register_evaluation(run)
    assert any("report" in label for r in store.results() for label in r.labels)


def test_two_runs_with_one_id_are_both_kept_and_shown(make_run, url, change_manifest):
    store, a, b = Store(url), make_run("a", A), make_run("b", B)
    change_manifest(b, run_id="a/20260101_000000")
    store.register_evaluation(a)
    store.register_evaluation(b)
    lines = run_lines(store)
    assert len(lines) == 2 and all("2 folders share this id" in line["notes"] for line in lines)


def test_checkpoints_are_registered_once_per_content(tmp_path, url, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    store = Store(url)
    model = checkpoint(tmp_path / "t", name="ckpt", algorithm="d1", parent="base", parent_hash="ph", family="llada")
    first = store.register_checkpoint(model)
    assert store.register_checkpoint(model) == first
    (model / "model.safetensors").write_bytes(b"other")
    second = store.register_checkpoint(model)
    assert [c.id for c in store.checkpoints("ckpt")] == [first, second]
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "model.safetensors").write_bytes(b"x")
    (bare / "config.json").write_text("{}")
    store.register_checkpoint(bare)
    assert store.checkpoints("bare")[0].labels == ["training manifest: run manifest is missing"]
    line = checkpoint_lines(store)[0]
    assert (line["checkpoint"], line["algorithm"], line["parent"], line["results"]) == ("ckpt", "d1", "base", [])


def test_index_rebuilds_the_same_rows_and_skips_what_did_not_change(make_run, tmp_path, url, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    runs = tmp_path / "runs"
    store = Store(url)
    for folder in (make_run("a", A), make_run("b", B)):
        store.register_evaluation(folder)
    store.register_checkpoint(checkpoint(runs / "t", name="ckpt"))
    rebuilt = Store(f"sqlite:///{tmp_path}/new.db")
    report = index_folders(rebuilt, runs)
    assert (report.evaluations, report.read, report.checkpoints, report.problems) == (2, 2, 1, [])
    assert rows_of(rebuilt) == rows_of(store)
    assert index_folders(rebuilt, runs).read == 0
    assert rows_of(rebuilt) == rows_of(store)


def test_index_names_a_folder_it_cannot_read_and_goes_on(make_run, tmp_path, url, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    make_run("b", B)
    broken = tmp_path / "runs" / "a" / "ckpt"
    broken.mkdir(parents=True)
    (broken / "config.json").write_text("{}")
    (broken / "model.safetensors").symlink_to(tmp_path / "nowhere")
    report = index_folders(Store(url), tmp_path / "runs")
    assert report.evaluations == 1 and len(report.problems) == 1 and str(broken) in report.problems[0]


def test_source_folders_called_records_are_no_runs(tmp_path):
    (tmp_path / "code" / "records").mkdir(parents=True)
    (tmp_path / "code" / "records" / "items.py").write_text("")
    assert list(find_folders(tmp_path)) == []


def test_pair_tests_are_kept(make_run, url):
    store = Store(url)
    for name, verdicts in (("a", A), ("b", B)):
        store.register_evaluation(make_run(name, verdicts))
    a, b = store.results()
    test = paired_binary(A, B)
    store.add_pair_test(a.id, b.id, test)
    store.add_pair_test(a.id, b.id, dataclasses.replace(test, p=0.9))
    kept = store.pair_tests()[a.id, b.id]
    assert (kept.delta, kept.p, kept.wins, kept.method) == (test.delta, test.p, test.wins, test.method)


# Schema


def test_head_is_the_newest_migration_and_makes_the_tables_as_declared(url):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    files = sorted((Path(database.__file__).parent / "migrations" / "versions").glob("0*.py"))
    assert files[-1].name.startswith(f"{HEAD}_")
    engine = open_engine(url)
    with engine.connect() as connection:
        assert (
            compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata) == []
        )


def test_a_database_of_the_previous_version_migrates_and_keeps_its_rows(make_run, url, tmp_path):
    engine = database._create(url)
    (tmp_path / "store").mkdir()
    migrate(engine, "0001")
    assert schema_version(engine) == "0001" and not inspect(engine).has_table("pair_tests")
    with engine.begin() as connection:
        connection.execute(text(
            "INSERT INTO evaluations (id, run_id, folder, digest, origin, status, labels, registered)"
            " VALUES (5, 'old', '/old', 'd', 'dare', 'finished', '[]', 'then')"
        ))  # fmt: skip
        connection.execute(text(
            "INSERT INTO results (evaluation_id, model, dataset, metric, value, n, row, settings, labels)"
            " VALUES (5, 'm', 'd', 'accuracy', 50.0, 2, '{}', '{}', '[]')"
        ))  # fmt: skip
    store = Store(url)
    assert schema_version(store.engine) == HEAD
    assert [(e.run_id, e.stamp) for e in store.evaluations()] == [("old", "")]
    assert [r.value for r in store.results()] == [50.0]
    assert store.register_evaluation(make_run("a", A)) == 6


def test_a_newer_database_is_refused(url):
    with Store(url).engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DataError, match="newer version"):
        Store(url)


def test_a_file_that_is_no_database_is_a_data_error(tmp_path):
    (tmp_path / "x.db").write_text("this is no database " * 200)
    with pytest.raises(DataError, match="cannot be opened"):
        Store(f"sqlite:///{tmp_path}/x.db")


def test_wrong_urls_and_missing_drivers_are_explained(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="not a database URL"):
        Store("no url at all")
    with pytest.raises(SetupError, match="driver"):
        Store("mysql+aiomysql://user:secret@host/name")
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError):
        Store(f"sqlite:///{tmp_path}/file/dare.db")
    monkeypatch.setenv("DARE_DB", f"sqlite:///{tmp_path}/by-env.db")
    assert Store().engine.url.database == f"{tmp_path}/by-env.db"


# Many writers, and killed ones


def _write_many(url, worker, writes):
    store = Store(url)
    for number in range(writes):
        store.register_result_for_test(f"{worker}-{number}")


@pytest.fixture
def many(monkeypatch):
    """Give the store a cheap write: one evaluation with one result, as a registration makes it."""
    from dare_eval.records.tables import Evaluation, Result

    def register(self, name):
        evaluation = Evaluation(
            run_id=name,
            folder=f"/{name}",
            digest=name,
            stamp="",
            origin="dare",
            status="finished",
            labels=[],
            registered="now",
        )
        result = Result(model="m", dataset="d", metric="a", value=1.0, n=1, row={}, settings={}, labels=[])
        return self._add_once(evaluation, [result])

    monkeypatch.setattr(Store, "register_result_for_test", register, raising=False)


def test_eight_processes_write_five_hundred_rows_each(url, many):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(url, number, 500)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    store = Store(url)
    assert {e.run_id for e in store.evaluations()} == {f"{w}-{n}" for w in range(8) for n in range(500)}
    results = store.results()
    assert len(results) == 4000 and len({r.evaluation_id for r in results}) == 4000


@pytest.mark.parametrize("delay_s", [0.05, 0.13, 0.31])
def test_kill_during_writes_leaves_a_whole_store(make_run, tmp_path, url, many, delay_s):
    Store(url)
    process = multiprocessing.get_context("fork").Process(target=_write_many, args=(url, 0, 10**6))
    process.start()
    while _count(url) == 0:
        time.sleep(0.005)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    store = Store(url)
    evaluations, results = store.evaluations(), store.results()
    assert [e.run_id for e in evaluations] == [f"0-{n}" for n in range(len(evaluations))]
    assert [r.evaluation_id for r in results] == [e.id for e in evaluations], "an evaluation and its rows come together"
    with sqlite3.connect(store.engine.url.database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.register_evaluation(make_run("a", A))


def test_index_after_a_kill_gives_the_rows_of_an_undisturbed_index(make_run, tmp_path, url):
    runs = tmp_path / "runs"
    for number in range(12):
        make_run(f"r{number:02d}", A if number % 2 else B)
    whole = Store(f"sqlite:///{tmp_path}/whole.db")
    index_folders(whole, runs)
    Store(url)
    process = multiprocessing.get_context("fork").Process(target=lambda: index_folders(Store(url), runs))
    process.start()
    while _count(url) < 3:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    store = Store(url)
    index_folders(store, runs)
    assert rows_of(store) == rows_of(whole)


def _count(url):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        return connection.execute("SELECT count(*) FROM evaluations").fetchone()[0]


def test_the_store_may_be_named_by_the_path_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setenv("DARE_DB", str(tmp_path / "mine.db"))
    Store()
    assert (tmp_path / "mine.db").is_file()
