"""All paired tests of a column at once give what the comparison of two runs gives one by one."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from dare_eval.records.best import PairwiseTests
from dare_eval.records.column_tests import REFUSED, prepare_pairs
from dare_eval.records.compare import compare_results
from dare_eval.records.intervals import bootstrap_columns, bootstrap_means
from dare_eval.records.item_files import ItemWriter
from dare_eval.records.runs import load_run
from dare_eval.records.significance import paired_bootstrap, reverse
from dare_eval.records.store import Store
from dare_eval.records.vectors import COLUMNS, read_vectors
from tests.records.record_kit import records


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DARE_CACHE", str(tmp_path / "cache"))
    return Store(f"sqlite:///{tmp_path}/store.db")


def some(draw, n=60, share=0.5, graded=False, **fields):
    found = records([bool(x) for x in draw.random(n) < share], **fields)
    if not graded:
        return found
    return [dataclasses.replace(r, value=1.0 if r.correct else round(float(draw.random()), 2)) for r in found]


def single(store, a, b):
    """Return the test that comparing the two runs gives, or None where it is refused."""
    folders = {e.id: e.folder for e in store.evaluations(all_states=True)}
    runs = [load_run(Path(folders[r.evaluation_id])) for r in (a, b)]
    rows, _ = compare_results(*runs, a.model, b.model, a.dataset)
    return next((row.test for row in rows if row.metric == a.metric), None)


def check_all(store):
    prepare_pairs(store)
    kept, results = store.pair_values(), store.results()
    checked = 0
    for i, a in enumerate(results):
        for b in results[i + 1 :]:
            if (a.dataset, a.metric) != (b.dataset, b.metric):
                assert (a.id, b.id) not in kept
                continue
            found, expected = kept.get((a.id, b.id)), single(store, a, b)
            if found is None or expected is None:
                assert expected is None and (found is None or found.method.startswith(REFUSED))
                continue
            for name in ("n", "wins", "losses", "method"):
                assert getattr(found, name) == getattr(expected, name)
            for name in ("delta", "low", "high", "p"):
                assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12)
            checked += 1
    return checked


def test_verdicts_and_graded_credit_equal_the_single_comparisons(make_run, store):
    draw = np.random.default_rng(0)
    for name, share in (("a", 0.4), ("b", 0.6), ("c", 0.6)):
        store.register_evaluation(make_run(name, some(draw, share=share, graded=True)))
    assert check_all(store) == 6, "three pairs of verdicts and three of credit"


def test_repeated_questions_are_clustered_as_in_the_single_comparison(make_run, store):
    draw = np.random.default_rng(1)
    for name in ("a", "b"):
        answers = []
        for repeat in range(3):
            for record in some(draw, n=20):
                key = f"{record.item_id}{repeat}"
                answers.append(dataclasses.replace(record, item_id=key, question_id=record.item_id, repeat=repeat))
        store.register_evaluation(make_run(name, answers))
    assert check_all(store) == 1
    assert (
        next(t for t in store.pair_values().values() if not t.method.startswith(REFUSED)).method == "paired-bootstrap"
    )


def test_different_item_sets_pair_on_what_is_common(make_run, store):
    draw = np.random.default_rng(2)
    for name, kept in (("a", slice(0, 50)), ("b", slice(10, 60)), ("c", slice(0, 50))):
        store.register_evaluation(make_run(name, some(draw, graded=True)[kept]))
    assert check_all(store) == 6
    assert {t.n for t in store.pair_values().values()} == {40, 50}


def test_pairs_that_may_not_be_compared_are_kept_with_their_reason(make_run, store):
    draw = np.random.default_rng(3)
    one, other = {"entry": {"template": "one"}}, {"entry": {"template": "other"}}
    store.register_evaluation(make_run("a", some(draw), **one))
    store.register_evaluation(make_run("b", some(draw), **other))
    store.register_evaluation(make_run("c", some(draw, prompt_sha="else"), **one))
    store.register_evaluation(make_run("d", some(draw, prompt_sha="else"), **one, family="dream"))
    assert check_all(store) == 2, "a prompt that differs is refused within a family, not between families"
    reasons = [t.method for t in store.pair_values().values() if t.n == 0]
    assert sum("template" in r for r in reasons) == 3 and sum("prompt as the model" in r for r in reasons) == 1
    a, b, *_ = store.results()
    assert PairwiseTests(store).test(a, b) is None and PairwiseTests(store).test(b, a) is None


def test_tests_are_made_once_and_only_for_what_is_new(make_run, store):
    draw = np.random.default_rng(4)
    store.register_evaluation(make_run("a", some(draw)))
    store.register_evaluation(make_run("b", some(draw)))
    told = []
    assert prepare_pairs(store, told.append) == 1 and len(told) == 1
    assert prepare_pairs(store, told.append) == 0 and len(told) == 1
    store.register_evaluation(make_run("c", some(draw)))
    assert prepare_pairs(store) == 2
    a, b = store.results()[:2]
    kept = PairwiseTests(store)
    assert kept.test(b, a) == reverse(kept.test(a, b))


def test_adding_pairs_that_another_process_kept_meanwhile_keeps_the_first(make_run, store, monkeypatch):
    draw = np.random.default_rng(5)
    for name in ("a", "b", "c"):
        store.register_evaluation(make_run(name, some(draw)))
    prepare_pairs(store)
    kept = store.pair_values()
    other = {key: dataclasses.replace(test, p=0.123) for key, test in kept.items()}
    monkeypatch.setattr(store, "pair_keys", lambda: frozenset())  # as if they had been added after the look-up
    store.add_pair_tests((a, b, test) for (a, b), test in other.items())
    assert store.pair_values() == kept


def test_a_run_whose_folder_is_gone_is_left_out(make_run, store):
    draw = np.random.default_rng(6)
    gone = make_run("a", some(draw))
    for folder in (gone, make_run("b", some(draw)), make_run("c", some(draw))):
        store.register_evaluation(folder)
    shutil.rmtree(gone)
    assert prepare_pairs(store) == 1


def test_store_version_changes_with_every_kind_of_row(make_run, store):
    draw = np.random.default_rng(7)
    versions = [store.version()]
    store.register_evaluation(make_run("a", some(draw)))
    versions.append(store.version())
    store.register_evaluation(make_run("b", some(draw)))
    versions.append(store.version())
    prepare_pairs(store)
    versions.append(store.version())
    assert len(set(versions)) == 4
    without = store.version(tests=False)
    assert len(without) < len(versions[0]) and without == Store(str(store.engine.url)).version(tests=False)


def test_columns_are_kept_for_a_known_state_and_made_again_when_damaged(make_run, store, tmp_path):
    draw = np.random.default_rng(8)
    folder = make_run("a", some(draw))
    store.register_evaluation(folder)
    stamp = store.evaluations()[0].stamp
    first = read_vectors(folder.resolve(), stamp, "model", "toy")
    [kept] = (tmp_path / "cache" / "vectors").rglob("*.npy")
    kept.write_bytes(b"damaged")
    again = read_vectors(folder.resolve(), stamp, "model", "toy")
    assert first.dtype == COLUMNS and (first == again).all() and kept.stat().st_size > 100
    with ItemWriter(folder / "records" / "model" / "toy.jsonl") as writer:
        writer.append(dataclasses.replace(records([True])[0], item_id="new"))
    kept.unlink()
    assert len(read_vectors(folder.resolve(), stamp, "model", "toy")) == len(first) + 1
    assert not list((tmp_path / "cache" / "vectors").rglob("*.npy")), "a state the store does not know is not kept"


def test_shared_draws_give_each_columns_own_means():
    draw = np.random.default_rng(9)
    values, clusters = draw.random((40, 3)), [i // 4 for i in range(40)]
    for labels in (None, clusters):
        shared = bootstrap_columns(values, clusters=labels, resamples=300)
        for column in range(3):
            own = bootstrap_means(values[:, column], clusters=labels, resamples=300)
            assert np.abs(shared[:, column] - own).max() < 1e-12


def test_reversing_a_test_equals_testing_the_other_way_round():
    draw = np.random.default_rng(10)
    a, b = draw.random(50), draw.random(50)
    there, back = paired_bootstrap(a, b), reverse(paired_bootstrap(b, a))
    assert (there.wins, there.losses, there.p) == (back.wins, back.losses, back.p)
    assert [there.delta, there.low, there.high] == pytest.approx([back.delta, back.low, back.high], abs=1e-12)
