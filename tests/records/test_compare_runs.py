import dataclasses
import json

import pytest

from dare_eval.errors import DataError, IncompleteError, UsageError
from dare_eval.records.compare import compare_runs, verdict
from dare_eval.records.ledger import Budget, unequal
from dare_eval.records.locate import locate
from dare_eval.records.manifest import ModelEntry, RunManifest, write_manifest
from dare_eval.records.runs import find_run, load_run
from dare_eval.records.stats import holm, paired_binary, paired_bootstrap
from dare_eval.records.templates import over_templates
from tests.records.record_kit import records

A = [n % 3 == 0 for n in range(60)]
B = [n % 3 != 1 for n in range(60)]


def compare(a, b, **settings):
    return compare_runs(load_run(a), load_run(b), **settings)


def test_binary_verdicts_use_mcnemar_and_name_every_flip(make_run):
    found = compare(make_run("a", A), make_run("b", B)).benchmarks[0]
    assert found.test == paired_binary(A, B) and found.p_holm == found.test.p
    assert (found.value_a, found.value_b, found.n) == (pytest.approx(100 / 3), pytest.approx(200 / 3), 60)
    assert [flip.index for flip in found.flips] == [n for n in range(60) if n % 3 == 2] and all(
        f.won for f in found.flips
    )
    assert found.flips[0].extracted_a == "2" and verdict(found) == "B better"
    assert found.cost == {"nfe": (4.0, 4.0), "tpf": (2.0, 2.0), "tps": (16.0, 16.0)}


def test_the_order_of_the_file_does_not_matter(make_run):
    graded = [dataclasses.replace(r, value=(n % 7) / 7, correct=False) for n, r in enumerate(records(A))]
    other = [dataclasses.replace(r, value=(n % 5) / 5, correct=False) for n, r in enumerate(records(A))]
    first = compare(make_run("a", graded), make_run("b", other)).benchmarks
    second = compare(make_run("c", graded[::-1]), make_run("d", other)).benchmarks
    assert [x.test for x in first] == [x.test for x in second]
    assert [x.metric for x in first] == ["accuracy", "credit"] and first[1].test.method == "paired-bootstrap"


def test_graded_credit_uses_the_paired_bootstrap_by_item(make_run):
    a = [dataclasses.replace(r, value=0.5, correct=False) for r in records(A)]
    b = [dataclasses.replace(r, value=0.25 + 0.5 * (n % 2), correct=False) for n, r in enumerate(records(A))]
    found = compare(make_run("a", a), make_run("b", b)).benchmarks[1].test
    ordered = sorted(zip(a, b, strict=True), key=lambda pair: pair[0].item_id)
    assert found == paired_bootstrap([x.value for x, _ in ordered], [y.value for _, y in ordered])


def test_several_answers_to_a_question_are_one_cluster(make_run):
    def repeated(verdicts):
        return [
            dataclasses.replace(r, item_id=f"{n:03d}", question_id=f"q{n // 4}", repeat=n % 4)
            for n, r in enumerate(records(verdicts))
        ]

    found = compare(make_run("a", repeated(A)), make_run("b", repeated(B))).benchmarks[0]
    expected = paired_bootstrap([float(v) for v in A], [float(v) for v in B], clusters=[n // 4 for n in range(60)])
    assert found.test == expected


def test_only_common_items_are_compared_and_the_rest_is_labelled(make_run):
    found = compare(make_run("a", A), make_run("b", B[:40])).benchmarks[0]
    assert found.n == 40 and found.test == paired_binary(A[:40], B[:40])
    assert found.labels == ["items differ: 40 paired, 20 only in the first, 0 only in the second"]


def test_failed_and_unrecorded_items_do_not_enter(make_run):
    broken = records(B)
    broken[0] = dataclasses.replace(broken[0], error="boom", correct=None)
    broken[1] = dataclasses.replace(broken[1], unrecorded=True, correct=None)
    found = compare(make_run("a", A), make_run("b", broken)).benchmarks[0]
    assert found.n == 58 and found.test == paired_binary(A[2:], B[2:])


@pytest.mark.parametrize(
    ("change", "name"),
    [({"template": "b"}, "task_template"), ({"prompt_hash": "x"}, "prompt_hash"), ({"scorer": "toy@2"}, "scorer")],
)
def test_other_questions_are_refused_until_allowed(make_run, change, name):
    a, b = make_run("a", A, entry={"template": "a"}), make_run("b", B, entry={"template": "a"} | change)
    found = compare(a, b).benchmarks[0]
    assert found.test is None and verdict(found) == "not comparable" and len(found.refused) == 1
    allowed = compare(a, b, allow=[name]).benchmarks[0]
    assert allowed.test is not None and allowed.labels == list(found.refused)


def test_other_lengths_are_refused_between_models_and_labelled_within_one(make_run):
    a, b = make_run("a", A), make_run("b", B, spec={"gen_length": 32})
    assert compare(a, b).benchmarks[0].refused == ("length (gen_length) differs: 16 / 32",)
    c = make_run("c", B, spec={"gen_length": 32}, weight_hash="hash-a")
    found = compare(a, c).benchmarks[0]
    assert found.test is not None and found.labels == ["length (gen_length) differs: 16 / 32"]


def test_other_steps_are_labelled(make_run):
    found = compare(make_run("a", A), make_run("b", B, spec={"steps": 4})).benchmarks[0]
    assert found.test is not None and found.labels == ["decode spec (steps) differs: 8 / 4"]


def test_prompts_as_received_decide_within_a_family_only(make_run):
    other = [dataclasses.replace(r, prompt_sha="z") for r in records(B)]
    assert "prompt as the model received it" in compare(make_run("a", A), make_run("b", other)).benchmarks[0].refused[0]
    found = compare(make_run("c", A), make_run("d", other, family="dream")).benchmarks[0]
    assert found.test is not None and "60 of 60" in found.labels[0]


def test_no_common_item_is_refused(make_run):
    found = compare(make_run("a", records(A, dataset="x")), make_run("b", records(B, dataset="y"))).benchmarks[0]
    assert found.test is None and found.refused == ("items differ: none is scored in both runs",)


def test_holm_covers_all_benchmarks(make_run):
    a, b = make_run("a", A), make_run("b", B)
    for folder, verdicts in ((a, A[:20]), (b, B[:20])):
        extra = make_run(f"x{folder.parent.name}", records(verdicts, dataset="more"), dataset="more")
        (extra / "records" / "model" / "more.jsonl").rename(folder / "records" / "model" / "more.jsonl")
    found = compare(a, b)
    assert [x.dataset for x in found.benchmarks] == ["more", "toy"]
    assert [x.p_holm for x in found.benchmarks] == holm([x.test.p for x in found.benchmarks])
    assert [x.dataset for x in compare(a, b, benches=["toy"]).benchmarks] == ["toy"]
    with pytest.raises(UsageError, match=r"toyy.*did you mean 'toy'"):
        compare(a, b, benches=["toyy"])


def test_data_sets_of_one_run_only_and_bad_lines_are_listed(make_run):
    a, b = make_run("a", A), make_run("b", B, dataset="else")
    with (a / "records" / "model" / "toy.jsonl").open("a") as stream:
        stream.write("{half")
    found = compare(a, b)
    assert found.benchmarks == () and len(found.missing) == 2 and "only in a/2026" in found.missing[0]
    assert "half line" in compare(a, make_run("c", A)).missing[0]


def test_the_model_must_be_named_when_there_are_several(make_run):
    a = make_run("a", A)
    make_run("a", B, model="second")
    with pytest.raises(UsageError, match="2 models"):
        compare(a, a)
    assert compare(a, a, model_a="model", model_b="second").benchmarks[0].n == 60
    with pytest.raises(UsageError, match="did you mean 'second'"):
        compare(a, a, model_a="model", model_b="secnd")


def test_comparison_is_json_ready(make_run):
    found = json.loads(json.dumps(compare(make_run("a", A), make_run("b", B)).to_dict()))
    assert found["benchmarks"][0]["test"]["delta"] == pytest.approx(100 / 3)
    assert found["benchmarks"][0]["comparable"] is True


def test_training_budgets_are_compared(make_run, tmp_path, change_manifest):
    runs = []
    for name, prompts in (("a", 100), ("b", 400)):
        output = tmp_path / f"train-{name}"
        budget = Budget(prompts=prompts, optimizer_steps=10, rollout_nfe=5 if name == "b" else None)
        write_manifest(output, RunManifest(run_id=name, kind="training", budget=budget))
        runs.append(make_run(name, A, model_id=str(output / "model")))
    found = compare(*runs).unequal
    assert [(x.name, x.a, x.b, x.ratio) for x in found] == [("prompts", 100, 400, 4.0), ("rollout_nfe", None, 5, None)]


def test_budgets_within_a_percent_are_equal():
    assert unequal(Budget(wall_s=100.0), Budget(wall_s=100.9)) == []
    assert unequal(None, None) == [] and len(unequal(None, Budget(prompts=0))) == 1
    assert unequal(Budget(prompts=0), Budget(prompts=4))[0].ratio is None


def test_templates_are_summarised(make_run):
    a, b = make_run("a", A, entry={"template": "t0"}), make_run("b", B, entry={"template": "t0"})
    first = compare(a, b).benchmarks[0]
    others = [dataclasses.replace(first, dataset=f"toy_{t}", template=t) for t in ("t1", "t2")]
    others[1] = dataclasses.replace(others[1], test=dataclasses.replace(first.test, delta=-0.1))
    row = over_templates([first, *others], 3)[0]
    assert row.templates == ("t0", "t1", "t2") and row.stable == pytest.approx(2 / 3)
    assert row.mean == pytest.approx((200 / 3 - 10) / 3) and row.spread == pytest.approx(100 / 3 + 10)
    with pytest.raises(IncompleteError, match="fewer than 4"):
        over_templates([first, *others], 4)


def test_the_latest_finished_run_is_found(make_run, change_manifest):
    old = make_run("w", A, stamp="20260101_000000")
    new = make_run("w", A, stamp="20260102_000000")
    unfinished = make_run("w", A, stamp="20260103_000000")
    change_manifest(unfinished, status="running")
    (old.parent / "zzz_notes" / "results" / "m").mkdir(parents=True)
    (old.parent / "zzz_notes" / "results" / "m" / "d.json").write_text("{}")
    assert find_run(old.parent).folder == new and find_run(old).folder == old
    assert find_run(old / "manifest.json").folder == old


def test_nothing_there_is_a_data_error(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        with pytest.raises(DataError):
            find_run(tmp_path / name)


def test_names_are_looked_up_in_the_store(make_run, tmp_path):
    from dare_eval.records.provenance import weight_hash
    from dare_eval.records.store import Store

    output = tmp_path / "train"
    (output / "model").mkdir(parents=True)
    (output / "model" / "model.safetensors").write_bytes(b"w")
    (output / "model" / "config.json").write_text("{}")
    made = ModelEntry(name="my-ckpt", family="llada", algorithm="d1", parent="base")
    write_manifest(output, RunManifest(run_id="train", kind="training", models=(made,)))
    url = f"sqlite:///{tmp_path}/s.db"
    store = Store(url)
    store.register_checkpoint(output / "model")
    with pytest.raises(DataError, match="no evaluation"):
        locate("my-ckpt", url)
    run = make_run("e", A, model="evaluated", weight_hash=weight_hash(output / "model"))
    store.register_evaluation(run)
    for name in ("my-ckpt", str(output), str(output / "model")):
        found = locate(name, url)
        assert found.run.folder == run and found.model == "evaluated"
    assert locate("e/20260101_000000", url).run.folder == run
    with pytest.raises(DataError, match="did you mean 'my-ckpt'"):
        locate("my-ckp", url)


def test_graded_metric_has_the_name_of_the_manifest_here_and_in_the_store(make_run, tmp_path):
    from dare_eval.records.best import PairwiseTests
    from dare_eval.records.store import Store

    graded = [dataclasses.replace(r, value=0.5, correct=False) for r in records(A)]
    names = {"metric": "exact", "graded_metric": "cell"}
    a, b = make_run("a", graded, entry=names), make_run("b", A, entry=names)
    assert [x.metric for x in compare(a, b).benchmarks] == ["exact", "cell"]
    store = Store(f"sqlite:///{tmp_path}/s.db")
    for folder in (a, b):
        store.register_evaluation(folder)
    found = {(r.settings["weight_hash"], r.metric): r for r in store.results()}
    assert set(found) == {("hash-a", "exact"), ("hash-a", "cell"), ("hash-b", "exact")}
    assert PairwiseTests(store).test(found["hash-a", "exact"], found["hash-b", "exact"]).method == "mcnemar-exact"
    assert PairwiseTests(store).test(found["hash-a", "cell"], found["hash-b", "exact"]) is None
