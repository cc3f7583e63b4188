"""Predictions are reused only when nothing that decides them has changed; results likewise."""

from __future__ import annotations

import json
import time

import pytest

from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")


def place(workplace, models=None, datasets=None, extra=""):
    return workplace.config(config(models or [model("sums")], datasets or [dataset()], extra))


def test_nothing_changed_nothing_runs(workplace):
    assert workplace.run(place(workplace)).code == 0
    done = workplace.run(place(workplace), "-r")
    assert done.code == 0
    assert len(workplace.decoded()) == 12
    assert "Partitioned into 0 tasks" in done.text
    assert done.row()["value"] == 100


def test_same_abbr_with_other_settings_is_recomputed(workplace):
    assert workplace.run(place(workplace)).row()["value"] == 100
    done = workplace.run(place(workplace, [model("sums", wrong_from=6)]), "-r")
    assert done.row()["value"] == 50
    assert len(workplace.decoded()) == 24
    assert "model.wrong_from: null -> 6" in done.text
    assert (done.run / "predictions" / "sums" / "add.json.stale").exists()
    again = workplace.run(place(workplace, [model("sums", wrong_from=6)]), "-r")
    assert again.row()["value"] == 50
    assert len(workplace.decoded()) == 24


def test_unfinished_items_of_other_settings_are_never_mixed_in(workplace):
    assert workplace.run(place(workplace, [model("sums", raise_at=8, batch_size=1)])).code == 3
    done = workplace.run(place(workplace, [model("sums", wrong_from=6)]), "-r")
    assert done.code == 0
    assert done.row()["value"] == 50
    assert len(workplace.decoded()) == 11 + 12


@pytest.mark.parametrize("change", ["batch_size=3", "batch_size=4, run_cfg=dict(num_gpus=0)"])
def test_batch_size_and_devices_do_not_matter(workplace, change):
    workplace.run(place(workplace))
    changed = model("sums").replace("batch_size=4", change)
    assert workplace.run(place(workplace, [changed]), "-r").code == 0
    assert len(workplace.decoded()) == 12


def test_only_the_evaluator_changed_scores_again_without_decoding(workplace):
    workplace.run(place(workplace))
    changed = dataset(evaluation="dict(evaluator=dict(type=SumEvaluator, offset=1))")
    done = workplace.run(place(workplace, datasets=[changed]), "-r")
    assert done.code == 0
    assert done.row()["value"] == 0
    assert len(workplace.decoded()) == 12
    assert "evaluation.evaluator.offset: null -> 1" in done.text
    assert all(record["upstream_correct"] is False for record in done.records("sums", "add"))


def test_changed_data_under_one_abbr(workplace):
    workplace.run(place(workplace))
    done = workplace.run(place(workplace, datasets=[dataset(start=50, size=20)]), "-r")
    assert done.row()["n"] == done.row()["expected"] == 20
    assert len(workplace.decoded()) == 32


def test_a_grown_data_set_is_not_cut_by_a_remembered_size(workplace):
    split = "infer['partitioner'] = dict(type=InferPartitioner, num_worker=2, min_task_size=4)"
    assert workplace.run(place(workplace, extra=split)).row()["n"] == 12
    done = workplace.run(place(workplace, datasets=[dataset(size=40)], extra=split), folder="other")
    assert done.row()["n"] == done.row()["expected"] == 40
    assert not (workplace.place / ".cache" / "dataset_size.json").exists()


def test_predictions_without_known_origin_are_not_used(workplace):
    first = workplace.run(place(workplace))
    (first.run / "predictions" / "sums" / "add.fingerprint").unlink()
    for path in (first.run / "predictions" / "sums").glob("*.items.jsonl"):
        path.unlink()
    workplace.run(place(workplace), "-r")
    assert len(workplace.decoded()) == 24


def test_parts_in_any_number_give_one_result(workplace):
    one = workplace.run(place(workplace, datasets=[dataset(size=40)]), folder="one")
    cut = "infer['partitioner'] = dict(type=InferPartitioner, num_worker=2, num_split=5, min_task_size=4)"
    many = workplace.run(place(workplace, datasets=[dataset(size=40)], extra=cut), folder="many")
    assert many.code == 0, many.text
    assert len(list((many.run / "predictions" / "sums").glob("add_*.json"))) == 5
    keys = ("item_id", "index", "response", "correct")
    assert [[r[k] for k in keys] for r in one.records("sums", "add")] == [
        [r[k] for k in keys] for r in many.records("sums", "add")
    ]
    assert len(workplace.decoded()) == 80
    recut = cut.replace("num_split=5", "num_split=3")
    again = workplace.run(place(workplace, datasets=[dataset(size=40)], extra=recut), "-r", folder="many")
    assert again.code == 0, again.text
    assert len(workplace.decoded()) == 80


def test_a_part_that_is_lost_is_not_scored_as_a_whole(workplace):
    cut = "infer['partitioner'] = dict(type=InferPartitioner, num_worker=1, num_split=4, min_task_size=4)"
    done = workplace.run(place(workplace, [model("sums", raise_at=9)], [dataset(size=16)], cut))
    assert done.code == 3
    assert done.row()["value"] is None
    assert "15 of 16" in done.err or "3 of 4" in done.text


def test_repeats_are_distinct_items(workplace):
    done = workplace.run(place(workplace, datasets=[dataset(n=3, k=3)]))
    assert done.code == 0, done.text
    records = done.records("sums", "add")
    assert len(records) == len({r["item_id"] for r in records}) == 36
    assert [r.get("repeat", 0) for r in records] == [0] * 12 + [1] * 12 + [2] * 12
    questions = {r.get("question_id", r["item_id"]) for r in records}
    assert len(questions) == 12
    assert workplace.run(place(workplace, datasets=[dataset(n=3, k=3)]), "-r").code == 0
    assert len(workplace.decoded()) == 36


def test_manifest_says_what_ran(workplace):
    done = workplace.run(place(workplace))
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["datasets"][0]["expected"] == 12
    assert len(manifest["datasets"][0]["content_hash"]) == 64
    assert manifest["environment"]["packages"]["opencompass"] == "0.5.4"
    assert manifest["started"] <= manifest["finished"]


def test_a_dry_run_changes_nothing(workplace):
    done = workplace.run(place(workplace))
    before = {
        path: path.read_bytes() for path in done.run.rglob("*") if path.is_file() and path.parent.name != "configs"
    }
    dry = workplace.run(place(workplace, [model("sums", wrong_from=3)]), "-r", "--dry-run")
    assert dry.code == 0, dry.text
    assert "Partitioned into 1 tasks" in dry.text
    after = {
        path: path.read_bytes() for path in done.run.rglob("*") if path.is_file() and path.parent.name != "configs"
    }
    assert after == before


def test_stages_one_by_one(workplace):
    assert workplace.run(place(workplace), "-m", "infer").code == 0
    done = workplace.run(place(workplace), "-m", "eval", "-r")
    assert done.row()["value"] == 100
    assert workplace.run(place(workplace), "-m", "viz", "-r").row()["value"] == 100
    assert len(workplace.decoded()) == 12


def test_a_stray_folder_is_not_taken_for_the_latest_run(workplace):
    first = workplace.run(place(workplace))
    (workplace.place / "runs" / "zzz_notes").mkdir()
    done = workplace.run(place(workplace), "-r")
    assert done.code == 2
    assert "zzz_notes" in done.err
    assert f"-r {first.run.name}" in done.err
    assert len(workplace.decoded()) == 12


def test_two_commands_in_one_run_folder(workplace):
    slow = place(workplace, [model("sums", sleep_s=0.5, batch_size=1)])
    first = workplace.start(slow)
    end = time.monotonic() + 60
    while not workplace.decoded() and time.monotonic() < end:
        time.sleep(0.05)
    second = workplace.run(slow, "-r")
    assert second.code == 2
    assert "another command works in this run folder" in second.err
    done = first.wait()
    assert done.code == 0, done.text
    assert done.row()["n"] == 12
    assert len(workplace.decoded()) == 12
