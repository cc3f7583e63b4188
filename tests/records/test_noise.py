"""Noise floors: measured on paired records, kept with the run, shown under differences."""

import json

import pytest
from sqlalchemy import inspect, text

from dare_eval.errors import DataError
from dare_eval.records import database
from dare_eval.records.compare import compare_runs, verdict
from dare_eval.records.database import HEAD, migrate, schema_version
from dare_eval.records.index import index_folders
from dare_eval.records.noise import NAME, Floor, floors_of, read_noise, with_floors, write_noise
from dare_eval.records.runs import load_run
from dare_eval.records.store import Store
from dare_eval.report.noise import Variation, noise_floor
from tests.records.record_kit import records

A = [n % 3 == 0 for n in range(60)]
VARIED = [{"axis": "dtype", "value": "bfloat16", "n": 60, "flips": 30, "other_texts": 30, "delta": 0.0}]


def floor(rate=50.0, *, model="model", dataset="toy", weight_hash="hash-a"):
    about = {"model": model, "dataset": dataset, "weight_hash": weight_hash, "n": 60}
    return Floor(**about, flip_rate=rate, low=rate / 2, high=rate * 1.5, variations=VARIED)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


def test_the_floor_is_the_largest_share_that_one_variation_flipped():
    base = records(A)
    same = Variation(axis="batch size", value="1", records=records(A))
    flipped = [not right if place < 3 else right for place, right in enumerate(A)]
    other = Variation(axis="dtype", value="bfloat16", records=records(flipped, response="other"))
    found = noise_floor("m", "d", "w", base, [same, other])
    assert (found.n, found.flip_rate) == (60, pytest.approx(5.0))
    assert found.low < 5.0 < found.high
    assert [(one["flips"], one["other_texts"], one["delta"]) for one in found.variations] == [
        (0, 0, 0.0),
        (3, 60, pytest.approx(100 * (2 - 1) / 60)),  # items 1 and 2 won, item 0 lost
    ]
    assert found.what == "batch size 1; dtype bfloat16"
    assert noise_floor("m", "d", "w", base, []) is None
    assert noise_floor("m", "d", "w", base, [Variation(axis="dtype", value="x", records=[])]) is None


def test_floors_are_indexed_with_their_run_and_rebuilt_from_the_folder(make_run, tmp_path, url):
    folder = make_run("a", A)
    store = Store(url)
    first = store.register_evaluation(folder)
    write_noise(folder, [floor()])
    assert read_noise(folder) == [floor()]
    report = index_folders(store, tmp_path / "runs")
    assert report.read == 1, "the new file is seen"
    assert store.register_evaluation(folder) == first and floors_of(store.engine) == [floor()]
    index_folders(Store(f"sqlite:///{tmp_path}/again.db"), tmp_path / "runs")
    assert floors_of(Store(f"sqlite:///{tmp_path}/again.db").engine, "toy") == [floor()]
    assert floors_of(store.engine, "other") == []


@pytest.mark.parametrize("damage", ["{", "[]", '{"version": 9, "floors": []}', '{"version": 1, "floors": [{"n": 1}]}'])
def test_a_damaged_file_is_a_label_of_its_run_and_loses_nothing(make_run, url, damage):
    folder = make_run("a", A)
    (folder / NAME).write_text(damage)
    with pytest.raises(DataError):
        read_noise(folder)
    store = Store(url)
    store.register_evaluation(folder)
    assert len(store.results()) == 1 and any("noise floor" in label for label in store.evaluations()[0].labels)


def test_no_difference_below_the_floor_counts(make_run, url):
    a, b = load_run(make_run("a", A)), load_run(make_run("b", [n % 3 != 1 for n in range(60)]))
    found = compare_runs(a, b)
    assert verdict(found.benchmarks[0]) == "B better"
    store = Store(url)
    assert with_floors(found, store.engine, (a, "model"), (b, "model")) == found, "nobody measured one"
    write_noise(a.folder, [floor(50.0)])
    store.register_evaluation(a.folder)
    floored = with_floors(found, store.engine, (a, "model"), (b, "model")).benchmarks[0]
    assert (verdict(floored), floored.floor) == ("within the noise floor", 50.0)
    assert floored.floor_source == "model: dtype bfloat16 (n = 60)"


def test_the_floor_of_the_models_compared_comes_before_that_of_others(make_run, url):
    a, b = load_run(make_run("a", A)), load_run(make_run("b", A))
    store = Store(url)
    for name, one in (("x", floor(9.0, model="x", weight_hash="hash-x")), ("y", floor(2.0, weight_hash="hash-b"))):
        folder = make_run(name, A)
        write_noise(folder, [one])
        store.register_evaluation(folder)
    sides = (a, "model"), (b, "model")
    assert with_floors(compare_runs(a, b), store.engine, *sides).benchmarks[0].floor == 2.0
    c = load_run(make_run("c", A, weight_hash="else"))
    assert with_floors(compare_runs(c, c), store.engine, (c, "model"), (c, "model")).benchmarks[0].floor == 9.0


def test_a_store_of_the_schema_before_gets_the_table_and_keeps_its_rows(make_run, tmp_path, url):
    engine = database._create(url)
    migrate(engine, "0002")
    assert not inspect(engine).has_table("noise_floors")
    with engine.begin() as connection:
        connection.execute(text(
            "INSERT INTO evaluations (id, run_id, folder, digest, stamp, origin, status, labels, registered)"
            " VALUES (5, 'old', '/old', 'd', 's', 'dare', 'finished', '[]', 'then')"
        ))  # fmt: skip
    store = Store(url)
    assert schema_version(store.engine) == HEAD and [one.run_id for one in store.evaluations()] == ["old"]
    folder = make_run("a", A)
    write_noise(folder, [floor()])
    store.register_evaluation(folder)
    assert floors_of(store.engine) == [floor()]


def test_the_comparison_shows_the_floor(make_run, cli, tmp_path, url):
    a, b = make_run("a", A), make_run("b", [n % 3 != 1 for n in range(60)])
    write_noise(a, [floor(50.0)])
    Store(url).register_evaluation(a)
    done = cli("dare-eval", "compare", a, b, "--db", url)
    assert done.returncode == 0, done.stderr
    assert "within the noise floor" in done.stdout and "noise floor 50.00 % of items flip" in done.stdout
    found = json.loads(cli("dare-eval", "compare", a, b, "--db", url, "--json").stdout)
    assert found["benchmarks"][0]["floor"] == 50.0


def test_a_store_that_cannot_be_read_is_said_and_runs_compare_all_the_same(make_run, cli, tmp_path):
    (tmp_path / "x.db").write_text("this is no database " * 200)
    a, b = make_run("a", A), make_run("b", [n % 3 != 1 for n in range(60)])
    done = cli("dare-eval", "compare", a, b, "--db", f"sqlite:///{tmp_path}/x.db")
    assert done.returncode == 0 and "B better" in done.stdout and "noise floors are not known" in done.stderr
