"""``dare-eval run`` and ``dare-eval show``: checks before the start, options, what they print."""

from __future__ import annotations

import json

import pytest

from tests.conftest import ROOT
from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")
FINE = model("fine")


def run(workplace, file, *options):
    return workplace.run("run", file, *options, program="dare-eval")


@pytest.mark.parametrize(
    ("models", "datasets", "code", "part"),
    [
        ([model("gone").replace("SumModel", "'no_such_package.Model'")], [dataset()], 5, "no_such_package"),
        ([FINE], [dataset(size="many")], 4, "add"),
        ([FINE, FINE], [dataset()], 2, "fine"),
        ([], [dataset()], 2, "names no models"),
    ],
)
def test_faults_are_found_before_the_start(workplace, models, datasets, code, part):
    done = run(workplace, workplace.config(config(models, datasets)))
    assert done.code == code, done.text
    assert done.err.count("╭") == 1
    assert part in done.err
    assert workplace.decoded() == []


def test_all_faults_of_a_kind_are_listed(workplace):
    broken = [dataset("a", size="x"), dataset("b", size="y")]
    done = run(workplace, workplace.config(config([FINE], broken)))
    assert done.code == 4
    assert "data set 'a'" in done.err
    assert "data set 'b'" in done.err


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("import os\nmodels = []", "del"),
        ("def f():\n    return 1\nmodels = [f]", "no function"),
        ("models = [", "SyntaxError"),
    ],
)
def test_config_files_that_opencompass_cannot_read(workplace, text, part):
    (workplace.place / "bad.py").write_text(text)
    done = run(workplace, workplace.place / "bad.py")
    assert done.code == 2, done.text
    assert part in done.err


def test_no_such_config(workplace):
    done = run(workplace, workplace.place / "absent.py")
    assert done.code == 4
    assert "absent.py" in done.err


@pytest.mark.parametrize(
    ("command", "variable", "part"),
    [
        (("run", "--template", 99), {}, "has no template 99"),
        (("run",), {"DARE_LIMIT": "abc"}, "DARE_LIMIT is no number of items"),
        (("noise", "--dtypes", "foo"), {}, "unknown dtype 'foo'"),
        (("noise", "--attention", "flx", "--dtypes", ""), {}, "did you mean 'flex'"),
    ],
)
def test_wrong_options_leave_no_folder_that_a_later_run_would_continue(workplace, command, variable, part):
    file = workplace.config(config([FINE], [dataset()]))
    place = workplace.place / "runs"
    workplace.env.update(variable)
    where = ["-w", place] if command[0] == "noise" else []  # the fixture gives it to run
    done = workplace.run(command[0], file, *where, *command[1:], program="dare-eval")
    assert done.code == 2 and part in done.err, done.text
    assert list(place.glob("*")) == []


def test_check_limit_and_workers(workplace):
    file = workplace.config(config([FINE], [dataset(size=60)]))
    checked = run(workplace, file, "--check")
    assert checked.code == 0
    assert "1 models, 1 data sets" in checked.out
    assert workplace.decoded() == []
    done = run(workplace, file, "--limit", 40, "--workers", 2)
    assert done.code == 0, done.text
    assert done.row()["n"] == 40
    assert len(list((done.run / "predictions" / "fine").glob("add_*.json"))) == 2


@pytest.mark.parametrize("scorer", ["upstream", "dare", "both"])
def test_a_data_set_without_a_scorer_of_ours_keeps_the_stock_verdicts(workplace, scorer):
    done = run(workplace, workplace.config(config([FINE], [dataset()])), "--scorer", scorer)
    assert done.code == 0, done.text
    assert done.row()["value"] == 100
    assert all(record["upstream_correct"] for record in done.records("fine", "add"))


def test_each_model_meets_its_own_data_sets_only(workplace):
    done = run(workplace, ROOT / "configs" / "eval" / "tiny_planning.py", "--limit", 4)
    assert done.code == 0, done.text
    pairs = {(row["model"], row["dataset"]) for row in done.report}
    assert pairs == {("tiny-sudoku", "sudoku4"), ("tiny-countdown", "countdown3")}


def test_show(workplace):
    broken = model("broken", raise_at=5)
    done = workplace.run(workplace.config(config([FINE, broken], [dataset()])))
    assert done.code == 3
    table = workplace.run("show", workplace.place / "runs", program="dare-eval")
    assert table.code == 0, table.text
    assert "100.0" in table.out
    rows = json.loads(workplace.run("show", done.run, "--json", "--model", "fine", program="dare-eval").out)
    assert [(row["model"], row["value"]) for row in rows] == [("fine", 100.0)]
    item = json.loads(workplace.run("show", done.run, "--item", "3", program="dare-eval").out)
    assert (item["model"], item["response"], item["correct"]) == ("fine", "4", True)
    by_id = workplace.run("show", done.run, "--item", item["item_id"][:10], program="dare-eval")
    assert json.loads(by_id.out)["index"] == 3
    absent = workplace.run("show", done.run, "--item", "999", program="dare-eval")
    assert absent.code == 4
    nothing = workplace.run("show", workplace.place / "nowhere", program="dare-eval")
    assert nothing.code == 4


def test_differences_between_scorers(workplace):
    same = dataset("toy").replace("SumDataset", "'opencompass.datasets.GSM8KDataset'")
    gsm8k = same.replace("abbr='toy'", "abbr='toy', path='opencompass/gsm8k'")
    folder = workplace.place / "data" / "data" / "gsm8k"
    folder.mkdir(parents=True)
    rows = [{"question": f"{i} + 1 =", "answer": str(i + 1)} for i in range(5)]
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    workplace.env["COMPASS_DATA_CACHE"] = str(workplace.place / "data")
    shifted = gsm8k.replace("eval_cfg=right", "eval_cfg=dict(evaluator=dict(type=SumEvaluator, offset=1))")
    done = workplace.run(workplace.config(config([FINE], [shifted])))
    assert done.code == 0, done.text
    assert (done.row("accuracy")["value"], done.row("stock accuracy")["value"]) == (100, 0)
    shown = workplace.run("show", done.run, "--diff-scorer", program="dare-eval")
    assert "5 of 5 items that both scored differ" in shown.out
    listed = json.loads(workplace.run("show", done.run, "--diff-scorer", "--json", program="dare-eval").out)
    assert [(row["item"], row["extracted"], row["upstream_extracted"]) for row in listed] == [
        (i, str(i + 1), str(i + 1)) for i in range(5)
    ]


def test_work_folder_that_cannot_be_written(workplace):
    file = workplace.config(config([FINE], [dataset()]))
    (workplace.place / "taken").write_text("a file")
    done = workplace.run("run", file, program="dare-eval", folder="taken/runs")
    assert done.code == 5, done.text
    assert done.err.count("╭") == 1
    assert "--work-dir" in done.err
    assert workplace.decoded() == []


def test_report_that_cannot_be_written(workplace):
    file = workplace.config(config([FINE], [dataset()]))
    first = workplace.run(file)
    (first.run / "report.json").unlink()
    (first.run / "report.json").mkdir()
    done = workplace.run(file, "-m", "viz", "-r")
    assert done.code == 5, done.text
    assert done.err.count("╭") == 1
    assert "the report cannot be written" in done.err
