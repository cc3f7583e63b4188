"""The store on a real PostgreSQL server, started here from the system's packages; skipped where there is none."""

import multiprocessing
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dare_eval.records.database import HEAD, schema_version
from dare_eval.records.index import index_folders
from dare_eval.records.noise import Floor, floors_of, write_noise
from dare_eval.records.store import Store
from tests.records.record_kit import records

pytestmark = pytest.mark.xdist_group("postgres")


def _binary(name):
    places = [shutil.which(name), *sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))]
    return next((place for place in places if place), None)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'dare[postgres]'")
    initdb, pg_ctl = _binary("initdb"), _binary("pg_ctl")
    if not initdb or not pg_ctl:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    user = None
    if os.getuid() == 0:  # the server refuses to run as root
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            pytest.skip("no user 'postgres' to run the server as")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: the socket's name may have 107 characters
    if user:
        shutil.chown(folder, user)

    def run(*command):
        subprocess.run(command, user=user, cwd=folder, check=True, capture_output=True, timeout=120)

    data = str(folder / "data")
    run(initdb, "-D", data, "-A", "trust", "-U", "dare", "-E", "UTF8", "--no-sync")
    run(pg_ctl, "-D", data, "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -c listen_addresses=''", "start")
    try:
        yield f"postgresql+psycopg://dare@/postgres?host={folder}"
    finally:
        run(pg_ctl, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _register(url, folders):
    store = Store(url)
    for folder in folders:
        store.register_evaluation(folder)


def test_the_store_works_unchanged_on_postgresql(server, make_run, tmp_path):
    folders = [make_run(f"r{n}", [(n + k) % 3 == 0 for k in range(12)]) for n in range(10)]
    context = multiprocessing.get_context(
        "fork"
    )  # several processes open the empty database, and register the same runs
    workers = [context.Process(target=_register, args=(server, folders)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    store, plain = Store(server), Store(f"sqlite:///{tmp_path}/plain.db")
    index_folders(plain, tmp_path / "runs")
    assert schema_version(store.engine) == HEAD
    here, there = ({e.folder: (e.digest, e.manifest) for e in s.evaluations()} for s in (store, plain))
    assert here == there and len(here) == 10
    rows = [
        sorted((r.weight_hash, r.value, r.low, r.row["nfe"], r.spec_digest) for r in s.results())
        for s in (store, plain)
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 10
    assert index_folders(store, tmp_path / "runs").read == 0


def test_awkward_texts_are_stored(server, make_run):
    odd = make_run("odd", records([True, False], response="\x00 \ud800 =1 <b>"), model="m\udcff")
    store = Store(server)
    store.register_evaluation(odd)
    assert store.results()[-1].model == "m\\udcff"


def test_noise_floors_are_stored(server, make_run):
    about = {"model": "model", "dataset": "pg", "weight_hash": "w", "n": 4}
    floor = Floor(**about, flip_rate=25.0, low=1.0, high=60.0, variations=[{"axis": "dtype", "value": "x", "n": 4}])
    folder = make_run("floored", [True, False, True, True], dataset="pg")
    write_noise(folder, [floor])
    store = Store(server)
    for _ in range(2):
        store.register_evaluation(folder)
    assert floors_of(store.engine, "pg") == [floor]
