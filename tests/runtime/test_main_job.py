"""The shipped configs as a user types them: scores, costs, replayed answers, HumanEval without any files."""

from __future__ import annotations

import json

import pytest

from dare_eval.records.runs import load_run
from tests.conftest import ROOT
from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")
EVAL = ROOT / "configs" / "eval"


def test_tiny_sudoku(workplace):
    done = workplace.run(EVAL / "tiny_sudoku.py")
    assert done.code == 0, done.text
    exact, cell = done.row("exact"), done.row("cell")
    assert 42 < exact["value"] < 62
    assert exact["low"] < exact["value"] < exact["high"]
    assert exact["n"] == exact["expected"] == 400
    assert (exact["nfe"], exact["tpf"]) == (16, 1)
    assert exact["tps"] > 0
    assert exact["value"] < cell["value"] < 100
    assert exact["decode_spec"]["gen_length"] == 16
    assert "row-fill" in done.out
    assert "malformed 0 of 400" in " ".join(done.out.split())
    record = done.records("tiny-sudoku", "sudoku4")[0]
    assert len(record["tokens"]) == record["generated_tokens"] == 16
    assert sorted(record["step_map"]) == list(range(16))
    assert record["prompt"].startswith("<bos>")
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert manifest["models"][0]["family"] == "llada"
    assert len(manifest["models"][0]["weight_hash"]) == 64
    assert manifest["environment"]["device"] == "cpu"
    assert load_run(done.run).results() == [("tiny-sudoku", "sudoku4")]


def test_tiny_countdown(workplace):
    done = workplace.run(EVAL / "tiny_countdown.py")
    assert done.code == 0, done.text
    exact, valid = done.row("exact"), done.row("valid")
    assert 10 < exact["value"] < 22
    assert exact["value"] < valid["value"] < 90
    assert exact["nfe"] == 3
    assert "10.0 under the published reward" in done.out


@pytest.mark.parametrize(
    "policy", [{"steps": 4}, {"policy": "threshold", "threshold": 0.6}, {"steps": 4, "temperature": 1.0}]
)
def test_batch_size_never_changes_a_token(workplace, policy):
    base = (ROOT / "configs" / "datasets" / "planning" / "sudoku4_gen.py").read_text()
    one = {"type": "dare_eval.models.llada.LLaDAModel", "path": "tiny-sudoku"}
    decoding = {"gen_length": 16, "block_length": 8, **policy}
    models = [{**one, "abbr": f"by-{size}", "decoding": decoding, "batch_size": size} for size in (1, 16)]
    text = f"{base}\nmodels = {models!r}\ndatasets = [dict(sudoku4_datasets[0], size=40)]"
    done = workplace.run(workplace.config(text))
    assert done.code == 0, done.text
    keys = ("item_id", "tokens", "response", "nfe", "step_map", "stop", "correct")
    by_size = [[[r[key] for key in keys] for r in done.records(f"by-{size}", "sudoku4")] for size in (1, 16)]
    assert by_size[0] == by_size[1]
    assert len(by_size[0]) == 40


def test_short_names_run_on_the_stock_runtime(workplace):
    names = ["--models", "tiny_sudoku", "--datasets", "sudoku4_gen", "--summarizer", "dare"]
    done = workplace.run(*names, "--config-dir", ROOT / "configs", "--debug")
    assert done.code == 0, done.text
    assert 42 < done.row("exact")["value"] < 62


def test_humaneval_needs_no_files(workplace):
    done = workplace.run(EVAL / "replay_humaneval.py")
    assert done.code == 0, done.text
    assert done.row("pass@1")["value"] == 100
    assert done.row("stock humaneval_pass@1")["value"] > 97, "three seconds of wall time may pass on a busy machine"
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert manifest["datasets"][0]["prompt_hash"].startswith("8e312c")


def test_humaneval_subset_with_a_model_that_cannot_code(workplace):
    done = workplace.run("run", EVAL / "tiny_humaneval.py", "--limit", 3, program="dare-eval")
    assert done.code == 0, done.text
    assert done.row("pass@1")["value"] == 0
    assert done.row("pass@1")["n"] == 3
    assert "n/a (subset)" in done.out


class TestRecordedAnswers:
    """LLaDA-8B's recorded outputs, against numbers measured on the same rows by other means."""

    @pytest.fixture
    def place(self, workplace, dare_data):
        workplace.env["DARE_DATA"] = str(dare_data)
        return workplace

    @staticmethod
    def values(done, metric):
        found = {row["model"].rpartition("-")[2]: row for row in done.report if row["metric"] == metric}
        return [found[length]["value"] for length in ("128", "256", "512")]

    def test_gsm8k(self, place):
        done = place.run(EVAL / "replay_llada_gsm8k.py")
        assert done.code == 0, done.text
        assert self.values(done, "stock accuracy") == pytest.approx([71.9, 78.8, 79.4], abs=0.06)
        assert all(row["n"] == 780 and row["unrecorded"] == 143 for row in done.report)
        assert done.row("accuracy", model="llada-8b-instruct-recorded-128")["extraction_rate"] > 98
        shown = place.run("show", done.run, "--diff-scorer", "--json", program="dare-eval")
        listed = json.loads(shown.out)
        differing = [
            (model, r["index"])
            for model, dataset in load_run(done.run).results()
            for r in done.records(model, dataset)
            if "upstream_correct" in r and r["upstream_correct"] != r["correct"]
        ]
        assert sorted((row["model"], row["item"]) for row in listed) == sorted(differing)
        assert listed
        assert all(row["extracted"] != row["upstream_extracted"] for row in listed)

    def test_countdown(self, place):
        done = place.run(EVAL / "replay_llada_countdown.py")
        assert done.code == 0, done.text
        assert self.values(done, "exact") == pytest.approx([22.5, 23.0, 16.9], abs=0.6)

    def test_sudoku(self, place):
        done = place.run(EVAL / "replay_llada_sudoku.py")
        assert done.code == 0, done.text
        assert self.values(done, "cell_d1_pad") == pytest.approx([12.3, 5.6, 5.5], abs=0.6)
        for count in (74, 108, 110):
            assert f"malformed {count} of 175" in " ".join(done.out.replace("│", " ").split())

    def test_math500(self, place):
        done = place.run(EVAL / "replay_llada_math500.py")
        assert done.code == 0, done.text
        assert self.values(done, "stock accuracy") == pytest.approx([26.6, 32.0, 35.7], abs=0.06)
        ours = self.values(done, "accuracy")
        assert all(mine >= stock - 0.6 for mine, stock in zip(ours, [26.6, 32.0, 35.7], strict=True))


def test_a_stock_evaluator_without_verdicts_keeps_its_number(workplace):
    judged = dataset("judged", "dict(evaluator=dict(type='tests.runtime.fakes.TotalEvaluator'))")
    done = workplace.run(workplace.config(config([model("sums", wrong_from=9)], [judged])))
    assert done.code == 0, done.text
    row = done.row()
    assert (row["value"], row["n"], row["expected"]) == (75, 12, 12)
    assert row["low"] < 75 < row["high"]
    assert row["labels"] == ["no verdict per item"]


def test_one_model_name_for_two_settings_across_combinations_is_refused(workplace):
    extra = "combinations = [dict(models=[m], datasets=[d]) for m, d in zip(models, datasets)]"
    text = config([model("sums"), model("sums", wrong_from=3)], [dataset("a"), dataset("b")])
    done = workplace.run(
        workplace.config(f"{text}\n{extra}\nmodel_dataset_combinations = combinations\ndel combinations")
    )
    assert done.code == 2
    assert "two different models" in done.err


def test_every_gpu_gets_a_worker_that_sees_only_it(workplace):
    workplace.env["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b,GPU-c"
    wants = model("sums").replace("batch_size=4", "batch_size=4, run_cfg=dict(num_gpus=1), sleep_s=0.02")
    done = workplace.run(workplace.config(config([wants], [dataset(size=60)])))
    assert done.code == 0, done.text
    assert (done.row()["value"], done.row()["n"]) == (100, 60)
    seen = (workplace.place / "decoded.log.devices").read_text().split()
    assert set(seen) == {"GPU-a", "GPU-b", "GPU-c"}
    assert len(list((done.run / "predictions" / "sums").glob("add_*.json"))) == 3


def test_only_workers_initialise_cuda(workplace):
    """A parent that did would make every later fork unusable."""
    workplace.env["CUDA_VISIBLE_DEVICES"] = "0,1"
    wants = model("sums", kind="'tests.runtime.fakes_cuda.CudaModel'", run_cfg={"num_gpus": 1}, sleep_s=0.02)
    done = workplace.run(workplace.config(config([wants], [dataset(size=40)])))
    assert done.code == 0, done.text
    lines = (workplace.place / "decoded.log.workers").read_text().splitlines()
    workers, parents = zip(*(line.split() for line in lines), strict=True)
    initialised = set((workplace.place / "decoded.log.cuda").read_text().split())
    assert initialised == set(workers)
    assert len(initialised) == 2
    assert not initialised & set(parents)


def test_a_model_over_several_gpus_runs_in_an_interpreter_of_its_own(workplace):
    workplace.env["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b"
    wants = model("sums").replace("batch_size=4", "batch_size=4, run_cfg=dict(num_gpus=2)")
    done = workplace.run(workplace.config(config([wants], [dataset()])))
    assert done.code == 0, done.text
    assert done.row()["value"] == 100
    assert set((workplace.place / "decoded.log.devices").read_text().split()) == {"GPU-a,GPU-b"}
    assert not list((workplace.place / "tmp").iterdir())
