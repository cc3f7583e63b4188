"""Reports, cards, noise and stability on real runs of the shipped models, as a user types them."""

from __future__ import annotations

import json

import pytest

from dare_eval.records.noise import floors_of, read_noise
from dare_eval.records.runs import load_run
from dare_eval.records.store import Store
from dare_eval.report.stability_file import read_stability
from tests.conftest import ROOT
from tests.runtime.configs import config, dataset, model

pytestmark = pytest.mark.xdist_group("opencompass")
EVAL = ROOT / "configs" / "eval"


def sudoku(workplace, abbr="tiny-sudoku", size=24, **settings):
    """Write a config of the shipped Sudoku model on a few puzzles and return its path."""
    base = (ROOT / "configs" / "datasets" / "planning" / "sudoku4_gen.py").read_text()
    decoding = settings.pop("decoding", {"gen_length": 16, "block_length": 16, "steps": 16})
    one = {"type": "dare_eval.models.llada.LLaDAModel", "path": "tiny-sudoku", "abbr": abbr, "batch_size": 24}
    made = one | {"decoding": decoding} | settings
    text = f"{base}\nmodels = [{made!r}]\ndatasets = [dict(sudoku4_datasets[0], size={size})]"
    return workplace.config(text, name="sudoku.py")


def store_of(workplace):
    return Store(workplace.env["DARE_DB"])


def test_a_run_registers_itself_and_two_identical_runs_match(workplace):
    first = workplace.run(sudoku(workplace))
    second = workplace.run(sudoku(workplace))
    assert (first.code, second.code) == (0, 0), first.text + second.text
    evaluations = store_of(workplace).evaluations()
    assert [(one.folder, one.status) for one in evaluations] == [(str(run.run), "finished") for run in (first, second)]
    done = workplace.run("report", second.run, "--against", first.run, "--out", "report", program="dare-eval")
    assert done.code == 0 and done.out.startswith("match: "), done.text
    kept = {path.name: path.read_bytes() for path in (workplace.place / "report").iterdir()}
    workplace.run("report", second.run, "--against", first.run, "--out", "report", program="dare-eval")
    assert kept == {path.name: path.read_bytes() for path in (workplace.place / "report").iterdir()}
    assert sorted(kept) == ["report.html", "report.md", "report.xml"]

    fewer = workplace.run(sudoku(workplace, decoding={"gen_length": 16, "block_length": 16, "steps": 8}))
    done = workplace.run("report", fewer.run, "--against", first.run, program="dare-eval")
    assert done.code == 3 and "steps 16 -> 8" in done.text and "off" in done.out
    done = workplace.run("report", first.run, "--against", "tiny-sudoku/sudoku4", program="dare-eval")
    assert done.code in (0, 3) and "card tiny-sudoku/sudoku4" in done.out


def test_a_store_that_cannot_be_opened_loses_no_run(workplace):
    (workplace.place / "no.db").write_text("this is no database " * 200)
    workplace.env["DARE_DB"] = f"sqlite:///{workplace.place}/no.db"
    done = workplace.run(sudoku(workplace, size=4))
    assert done.code == 0 and done.row("exact")["n"] == 4, done.text
    shown = "".join(done.out.split())
    assert "notinthestore:" in shown and f"dare-evalindex{done.run}" in shown


def test_an_incomplete_run_is_in_the_store_as_such(workplace):
    raising = "dict(evaluator=dict(type='tests.runtime.fakes.RaisingEvaluator'))"
    bad = f"datasets.append(dict(datasets[0], abbr='bad', eval_cfg={raising}))"
    path = sudoku(workplace, size=4)
    path.write_text(f"{path.read_text()}\n{bad}\n")
    done = workplace.run(path)
    assert done.code == 3, done.text
    (evaluation,) = store_of(workplace).evaluations()
    assert (evaluation.status, evaluation.folder) == ("incomplete", str(done.run))
    report = workplace.run("report", done.run, program="dare-eval")
    assert report.code == 3 and "incomplete" in report.out


def test_a_score_without_its_settings_stays_out_until_it_is_indexed(workplace):
    done = workplace.run(workplace.config(config([model()], [dataset()])))
    assert done.code == 0, done.text
    assert "not in the store: a score without its decode spec cannot enter" in " ".join(done.out.split())
    assert store_of(workplace).evaluations() == []
    assert workplace.run("index", "runs", program="dare-eval").code == 0
    assert len(store_of(workplace).evaluations()) == 1


def test_the_card_of_a_shipped_model_is_reproduced(workplace):
    done = workplace.run("reproduce", "tiny-sudoku/sudoku4", "--out", "report", program="dare-eval")
    assert done.code == 0, done.text
    assert "card:  tiny-sudoku/sudoku4: 51.75" in done.out
    text = (workplace.place / "report" / "report.md").read_text()
    assert "Verdict: match" in text or "Verdict: within interval" in text
    assert store_of(workplace).evaluations()
    done = workplace.run("reproduce", "tiny-sudoku/sudoku4", "--path", "x", program="dare-eval")
    assert done.code == 2 and "shipped checkpoint" in done.text


def test_stability_reads_step_maps_and_recorded_guesses(workplace):
    plain = workplace.run(sudoku(workplace))
    done = workplace.run("stability", plain.run, program="dare-eval")
    assert done.code == 0 and "from the step map" in done.out, done.text
    (found,) = read_stability(plain.run)
    assert (found.n, found.unread, found.source) == (24, 0, "step map")
    assert all(item.last_change == 15 for item in found.items), "a grid is whole with its last digit only"

    guessed = workplace.run(sudoku(workplace, record_x0=True))
    assert guessed.code == 0, guessed.text
    done = workplace.run("stability", guessed.run, "--json", program="dare-eval")
    assert done.code == 0, done.text
    (found,) = read_stability(guessed.run)
    assert (found.n, found.unread, found.source) == (24, 0, "x0")
    assert json.loads(done.out)["results"][0]["source"] == "x0"
    assert any(item.last_change < 15 for item in found.items), "some guesses are final before the last forward"
    assert found.oracle_right.value >= sum(item.right for item in found.items) / 24
    here, there = (load_run(run.run).items("tiny-sudoku", "sudoku4").by_id for run in (plain, guessed))
    assert {key: one.tokens for key, one in here.items()} == {key: one.tokens for key, one in there.items()}


def test_flips_over_repeated_seeds_are_measured(workplace):
    base = (ROOT / "configs" / "datasets" / "planning" / "sudoku4_gen.py").read_text()
    hot = {"type": "dare_eval.models.llada.LLaDAModel", "path": "tiny-sudoku", "abbr": "hot", "batch_size": 24}
    hot["decoding"] = {"gen_length": 16, "block_length": 16, "steps": 8, "temperature": 1.0}
    text = f"{base}\nmodels = [{hot!r}]\ndatasets = [dict(sudoku4_datasets[0], size=12, n=3)]"
    done = workplace.run(workplace.config(text))
    assert done.code == 0, done.text
    assert workplace.run("stability", done.run, program="dare-eval").code == 0
    (found,) = read_stability(done.run)
    assert found.flip_rate.n == 12 and 0 < found.flip_rate.value < 1


def test_models_that_differ_in_their_seed_alone_are_seeds_of_one(workplace):
    hot = {"gen_length": 16, "block_length": 16, "steps": 8, "temperature": 1.0}
    path = sudoku(workplace, size=12, abbr="s0", decoding=hot)
    more = "models += [dict(models[0], abbr='s1', decoding=dict(models[0]['decoding'], seed=1)),"
    more += " dict(models[0], abbr='cold', decoding=dict(models[0]['decoding'], temperature=0.0))]"
    path.write_text(f"{path.read_text()}\n{more}\n")
    done = workplace.run(path)
    assert done.code == 0, done.text
    assert workplace.run("stability", done.run, program="dare-eval").code == 0
    found = {one.model: one.flip_rate for one in read_stability(done.run)}
    assert found["cold"] is None and found["s0"] == found["s1"] and found["s0"].n == 12


def test_noise_is_measured_stored_and_shown(workplace):
    path = sudoku(workplace, size=16)
    done = workplace.run("noise", path, "--batch-sizes", "1", "--attention", "", program="dare-eval")
    assert done.code == 0 and "noise floor of tiny-sudoku on sudoku4" in done.out, done.text
    runs = list((workplace.place / "runs" / "noise" / "sudoku").glob("20*"))
    (floor,) = read_noise(runs[0])
    assert [(one["axis"], one["value"], one["n"]) for one in floor.variations] == [
        ("batch size", "1", 16), ("dtype", "bfloat16", 16),
    ]  # fmt: skip
    assert floor.variations[0]["other_texts"] == 0, "batch composition never changes a row"
    assert floors_of(store_of(workplace).engine, "sudoku4") == [floor]
    run = load_run(runs[0])
    shown = workplace.run(
        "compare", run.folder, run.folder, "--model-a", "tiny-sudoku", "--model-b", "tiny-sudoku@batch_size=1",
        program="dare-eval",
    )  # fmt: skip
    assert shown.code == 0 and "noise floor" in shown.out, shown.text
    assert workplace.run("noise", path, "--batch-sizes", "0", program="dare-eval").code == 2


def test_a_folder_that_stock_opencompass_made_is_indexed_and_labelled(workplace):
    """Stock partitioners, runner, tasks and summarizer: nothing of ours took part."""
    path = workplace.place / "stock.py"
    path.write_text(config([model(wrong_from=6)], [dataset()]))
    done = workplace.run(path, "--debug")
    assert done.code == 0, done.text
    assert not (done.run / "manifest.json").exists() and not (done.run / "records").exists()
    indexed = workplace.run("index", "runs", program="dare-eval")
    assert indexed.code == 0 and "made by plain OpenCompass" in indexed.out, indexed.text
    (evaluation,), (result,) = store_of(workplace).evaluations(), store_of(workplace).results()
    assert (evaluation.origin, result.model, result.dataset) == ("opencompass", "sums", "add")
    assert (result.value, result.n, result.spec_digest) == (50.0, 12, None)
    assert {"decode spec unknown", "weights unknown", "cost unknown"} <= set(result.labels)
    report = workplace.run("report", done.run, program="dare-eval")
    assert report.code == 0 and "made by plain OpenCompass" in report.out
