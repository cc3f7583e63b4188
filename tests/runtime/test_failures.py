"""Whatever fails: exit code 3, one panel that names model, data set, item, cause and remedy, and the rest survives."""

from __future__ import annotations

import pytest

from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")
FINE = model("fine")


def panels(done) -> int:
    return done.err.count("╭")


def test_a_whole_run_is_exit_code_0_and_complete(workplace):
    done = workplace.run(workplace.config(config([FINE], [dataset()])))
    assert done.code == 0, done.text
    row = done.row()
    assert (row["value"], row["n"], row["expected"]) == (100.0, 12, 12)
    assert row["low"] < 100 == row["high"]
    assert panels(done) == 0
    assert (done.run / "summary").is_dir()
    assert "report.json" in done.out


def test_model_that_raises_on_item_5(workplace):
    broken = model("broken", raise_at=5)
    done = workplace.run(workplace.config(config([broken, FINE], [dataset(), dataset("far", start=100)])))
    assert done.code == 3
    assert panels(done) == 1
    for part in ("broken", "add", "item 5", "cannot answer 5", "11 of 12", "remedy"):
        assert part in done.err, done.err
    assert done.row(model="fine", dataset="add")["value"] == 100
    assert done.row(model="broken", dataset="far")["value"] == 100
    assert done.row(model="broken", dataset="add")["value"] is None


def test_only_the_item_that_raised_runs_again(workplace):
    place = workplace.config(config([model("sums", raise_at=5)], [dataset()]))
    assert workplace.run(place).code == 3
    first = workplace.decoded()
    assert sorted(map(int, first)) == [n for n in range(12) if n != 5]
    done = workplace.run(workplace.config(config([model("sums", raise_at=5)], [dataset()])), "-r")
    assert done.code == 3
    assert workplace.decoded() == first


def test_missing_class_is_named_with_its_real_cause(workplace):
    gone = model("gone").replace("type=SumModel", "type='tests.runtime.fakes.SumModle'")
    nowhere = model("nowhere").replace("type=SumModel", "type='no_such_package.Model'")
    done = workplace.run(workplace.config(config([gone, nowhere, FINE], [dataset()])))
    assert done.code == 3
    assert panels(done) == 2
    assert "did you mean 'tests.runtime.fakes.SumModel'" in done.err
    assert "No module named 'no_such_package'" in done.err
    assert done.row(model="fine")["value"] == 100


def test_missing_class_of_a_data_set_is_no_missing_file(workplace):
    gone = dataset("gone").replace("type=SumDataset", "type='tests.runtime.fakes.SumDatasets'")
    done = workplace.run(workplace.config(config([FINE], [gone, dataset()])))
    assert done.code == 3
    assert panels(done) == 1
    assert "did you mean 'tests.runtime.fakes.SumDataset'" in done.err
    assert "COMPASS_DATA_CACHE" not in done.err
    assert done.row(dataset="add")["value"] == 100


def test_planning_that_raises_costs_its_pair_only(workplace):
    odd = model("odd").replace("type=SumModel", "type='tests.runtime.fakes.UnplannableModel'")
    done = workplace.run(workplace.config(config([odd, FINE], [dataset()])))
    assert done.code == 3
    assert panels(done) == 1
    for part in ("odd on add", "planning raised KeyError: 'layers'", "remedy"):
        assert part in done.err, done.err
    assert done.row(model="fine")["value"] == 100


def test_missing_data_is_named_with_the_place_it_was_looked_for(workplace):
    extra = "with read_base():\n    from opencompass.configs.datasets.gsm8k.gsm8k_gen_1d7fe4 import gsm8k_datasets"
    text = config([FINE], [dataset(), "*gsm8k_datasets"], extra)
    place = workplace.config("from mmengine.config import read_base\n" + text)
    workplace.env["COMPASS_DATA_CACHE"] = str(workplace.place / "nothing")
    done = workplace.run(place)
    assert done.code == 3
    assert panels(done) == 1
    for part in ("fine", "gsm8k", "nothing/data/gsm8k", "COMPASS_DATA_CACHE"):
        assert part in done.err, done.err
    assert done.row(dataset="add")["value"] == 100


def test_data_sets_behind_the_one_that_kills_go_to_a_new_worker(workplace):
    sets = [dataset(), dataset("far", start=100), dataset("farther", start=200)]
    done = workplace.run(workplace.config(config([model("victim", kill_at=9, batch_size=2)], sets)))
    assert done.code == 3 and panels(done) == 1
    assert "add" in done.err and "SIGKILL" in done.err
    assert done.row(dataset="far")["value"] == done.row(dataset="farther")["value"] == 100
    assert done.row(dataset="add")["value"] is None


def test_a_worker_killed_before_its_first_item_is_not_started_again(workplace):
    sets = [dataset(), dataset("far", start=100)]
    done = workplace.run(workplace.config(config([model("victim", kill_at=0, batch_size=2), FINE], sets)))
    assert done.code == 3 and panels(done) == 2
    assert done.row(model="victim", dataset="far")["value"] is None
    assert done.row(model="fine", dataset="far")["value"] == 100


def test_killed_worker_leaves_a_panel_and_its_items(workplace):
    place = workplace.config(config([model("victim", kill_at=9, batch_size=2), FINE], [dataset()]))
    done = workplace.run(place)
    assert done.code == 3
    assert panels(done) == 1
    for part in ("victim", "add", "SIGKILL", "8 items were decoded", "memory"):
        assert part in done.err, done.err
    assert done.row(model="fine")["value"] == 100
    again = workplace.run(place, "-r")
    assert again.code == 0, again.text
    assert again.row(model="victim")["value"] == 100
    assert sorted(map(int, workplace.decoded())) == sorted([*range(12), *range(12)])


def test_evaluator_that_raises_keeps_predictions_and_other_results(workplace):
    bad = dataset("bad", "dict(evaluator=dict(type=RaisingEvaluator))")
    done = workplace.run(workplace.config(config([FINE], [bad, dataset()])))
    assert done.code == 3
    assert panels(done) == 1
    for part in ("fine", "bad", "no verdict on 1", "remedy"):
        assert part in done.err, done.err
    assert done.row(dataset="add")["value"] == 100
    assert (done.run / "predictions" / "fine" / "bad.json").exists()


def test_data_set_that_raises_while_loading(workplace):
    broken = dataset("broken", size="many")
    done = workplace.run(workplace.config(config([FINE], [broken, dataset()])))
    assert done.code == 3
    assert panels(done) == 1
    assert "TypeError" in done.err
    assert done.row(dataset="add")["value"] == 100


@pytest.mark.parametrize(
    ("models", "datasets", "named"),
    [
        ([model("same"), model("same", wrong_from=3)], [dataset()], "same"),
        ([FINE], [dataset("add"), dataset("add", start=5)], "add"),
        ([FINE], [dataset("coll"), dataset("coll_0")], "coll_0"),
    ],
)
def test_names_that_collide_are_refused(workplace, models, datasets, named):
    done = workplace.run(workplace.config(config(models, datasets)))
    assert done.code == 2
    assert panels(done) == 1
    assert named in done.err
    assert workplace.decoded() == []


def test_unknown_scorer_is_refused_before_anything_runs(workplace):
    extra = "eval['runner']['task']['scorer'] = 'bothe'"
    done = workplace.run(workplace.config(config([FINE], [dataset()], extra)))
    assert done.code == 2
    assert "did you mean 'both'" in done.err
    assert workplace.decoded() == []


def test_more_gpus_than_there_are(workplace):
    workplace.env["CUDA_VISIBLE_DEVICES"] = ""
    wants = model("wants").replace("batch_size=4", "batch_size=4, run_cfg=dict(num_gpus=1)")
    done = workplace.run(workplace.config(config([wants, FINE], [dataset()])))
    assert done.code == 3
    assert "wants 1 GPUs" in done.err
    assert done.row(model="fine")["value"] == 100


def test_several_answers_per_call_are_refused_with_the_way_to_get_repeats(workplace):
    several = model("several", generation_kwargs={"num_return_sequences": 2})
    done = workplace.run(workplace.config(config([several], [dataset()])))
    assert done.code == 3
    assert "num_return_sequences" in done.err


def test_a_broken_summarizer_is_found_before_anything_is_decoded(workplace):
    extra = "summarizer = dict(type='dare_eval.runtime.summarizer.ReportSumarizer')"
    done = workplace.run(workplace.config(config([FINE], [dataset()], extra)))
    assert done.code == 5
    assert "did you mean 'dare_eval.runtime.summarizer.ReportSummarizer'" in done.err
    assert workplace.decoded() == []
