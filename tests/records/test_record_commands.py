"""The command lines over real folders."""

import json

import pytest

from dare_eval.records.item_table import read_parquet
from dare_eval.records.items import ItemRecord
from dare_eval.records.runs import load_run
from tests.records.record_kit import records

A = [n % 3 == 0 for n in range(60)]
B = [n % 3 != 1 for n in range(60)]


@pytest.fixture
def dare(cli, tmp_path):
    def run(*args):
        return cli("dare-eval", *args, env={"DARE_DB": f"sqlite:///{tmp_path}/s.db"})

    return run


def test_index_ls_compare_and_export(dare, make_run, tmp_path):
    a, b = make_run("a", A), make_run("b", B, spec={"steps": 4})
    done = dare("index", tmp_path / "runs")
    assert done.returncode == 0 and "2 runs (2 new or changed), 0 checkpoints" in done.stdout, done.stderr
    lines = json.loads(dare("ls", "runs", "--json").stdout)
    assert [line["run"] for line in lines] == ["a/20260101_000000", "b/20260101_000000"]
    assert "n=60, NFE 4, tok/s 16" in lines[0]["results"][0]
    assert "a/20260101_000000" in dare("ls").stdout

    done = dare("compare", a.parent, "b/20260101_000000", "--items", "3")
    assert done.returncode == 0, done.stderr
    assert "+33.33" in done.stdout and "B better *" in done.stdout and "20 items flipped, 3 shown" in done.stdout
    assert "not of the model alone: decode spec (steps) differs: 8 / 4" in done.stdout
    found = json.loads(dare("compare", a, b, "--json").stdout)
    assert found["benchmarks"][0]["test"]["wins"] == 20 and len(found["benchmarks"][0]["flips"]) == 20

    out = tmp_path / "out" / "results.csv"
    assert dare("export", "csv", "--out", out).returncode == 0 and out.read_text().count("\n") == 3
    assert dare("export", "markdown", "--run", a).stdout.count("toy") == 1
    done = dare("export", "parquet", "--run", a, "--out", tmp_path / "tables")
    assert done.returncode == 0
    assert read_parquet(tmp_path / "tables" / "model" / "toy.parquet") == load_run(a).items("model", "toy").records


def test_compare_refuses_with_exit_code_2_and_the_flag_that_allows(dare, make_run):
    a, b = make_run("a", A, entry={"template": "a"}), make_run("b", B, entry={"template": "b"})
    done = dare("compare", a, b)
    assert done.returncode == 2 and "refused: task template differs: a / b" in done.stdout
    assert "not comparable" in done.stderr and "--allow task_template" in done.stderr
    assert dare("compare", a, b, "--allow", "task_template").returncode == 0


def test_compare_without_a_common_data_set_is_incomplete(dare, make_run):
    done = dare("compare", make_run("a", A), make_run("b", B, dataset="else"))
    assert done.returncode == 3 and "no data set in common" in done.stderr


def test_templates_are_demanded(dare, make_run):
    done = dare("compare", make_run("a", A), make_run("b", B), "--templates", "3")
    assert done.returncode == 3 and "fewer than 3 templates" in done.stderr


def test_texts_of_models_reach_the_terminal_escaped(dare, make_run):
    ugly = "\x1b]0;title\x07[red]=1+1</b>\n"
    mine = [ItemRecord(item_id=str(n), correct=n > 0, extracted=ugly, reference=ugly, index=n) for n in range(3)]
    other = [ItemRecord(item_id=str(n), correct=n < 2, extracted=ugly, index=n) for n in range(3)]
    done = dare("compare", make_run("a", mine), make_run("b", other))
    assert done.returncode == 0 and "\x1b]0" not in done.stdout and "\x07" not in done.stdout
    assert "\\x1b]0;title\\x07[red]=1+1</b>" in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("compare", "nowhere", "nowhere"), 4, "no run or checkpoint called"),
        (("ls", "chekpoints"), 2, "did you mean 'checkpoints'"),
        (("export", "cvs"), 2, "did you mean 'csv'"),
        (("export", "parquet"), 2, "--run RUN --out FOLDER"),
        (("index", "nowhere"), 4, "no such folder"),
        (("ls", "runs", "--db", "nonsense"), 2, "not a database URL"),
    ],
)
def test_mistakes_are_one_panel(dare, args, code, text):
    done = dare(*args)
    assert done.returncode == code and text in done.stderr and "Traceback" not in done.stderr


def test_an_empty_store_says_what_to_type_and_leaves_no_file(dare, tmp_path):
    assert "dare-eval index runs/" in dare("ls", "checkpoints").stdout
    assert "dare-eval index runs/" in dare("compare", "a", "b").stderr
    assert not (tmp_path / "s.db").exists()


def test_an_empty_export_says_what_to_type_and_makes_no_store(dare, make_run, tmp_path):
    done = dare("export", "csv")
    assert done.returncode == 0 and "type: dare-eval index runs/" in done.stderr and not (tmp_path / "s.db").exists()
    done = dare("export", "json")
    assert json.loads(done.stdout) == []
    run = make_run("a", records(A))
    assert dare("index", tmp_path / "runs").returncode == 0
    done = dare("export", "json", "--run", run)
    assert len(json.loads(done.stdout)) == 1 and "no result" not in done.stderr


def test_reading_a_store_in_a_folder_that_is_not_there_is_refused_and_makes_none(dare, make_run, tmp_path):
    run, url = make_run("a", records(A)), f"sqlite:///{tmp_path}/absent/deep/x.db"
    for command in (("ls", "runs"), ("export", "csv"), ("compare", run, run), ("report", "name")):
        done = dare(*command, "--db", url)
        assert done.returncode == 4 and "folder of this store does not exist" in done.stderr, command
        assert "dare-eval index runs/ --db" in done.stderr and not (tmp_path / "absent").exists(), command


def test_index_tells_what_it_could_not_read(dare, make_run, tmp_path):
    run = make_run("a", records(A))
    (run / "manifest.json").write_text("{corrupt")
    done = dare("index", tmp_path / "runs")
    assert done.returncode == 0 and "not readable JSON" in done.stdout
    broken = tmp_path / "runs" / "ckpt"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    (broken / "model.safetensors").symlink_to(tmp_path / "nowhere")
    done = dare("index", tmp_path / "runs")
    assert done.returncode == 4 and "1 folders could not be indexed" in done.stderr and "1 runs" in done.stdout


def test_index_and_ls_name_damaged_records_and_reports_every_time(dare, make_run, tmp_path):
    run = make_run("a", records(A))
    [file] = (run / "records").glob("*/*.jsonl")
    with file.open("a") as stream:
        stream.write('{"version": 99}\n{broken\n')
    (run / "report.json").write_text("{")
    for _ in range(2):  # the second time the folder is not read again
        done = dare("index", tmp_path / "runs")
        assert done.returncode == 0 and "2 record lines not read" in done.stdout
        assert "unknown version" in done.stdout and "report is not readable JSON" in done.stdout
    [line] = json.loads(dare("ls", "runs", "--json").stdout)
    assert any("2 record lines not read" in note for note in line["notes"])
    assert any("report is not readable JSON" in note for note in line["notes"])


def test_show_compare_and_stability_name_damaged_files_of_a_run(dare, make_run):
    run, other = make_run("a", records(A)), make_run("b", records(A))
    [file] = (run / "records").glob("*/*.jsonl")
    with file.open("a") as stream:
        stream.write('{"version": 99}\n{broken\n')
    (run / "report.json").write_text("{")
    for command in (("show", run), ("show", run, "--json"), ("compare", run, other), ("stability", run)):
        told = dare(*command).stderr
        assert "toy: line 61 not read: unknown version" in told and "toy: line 62 not read: corrupt" in told, command
        assert told.count("report is not readable JSON") == 1, command
    assert "not read" not in dare("show", other).stderr
    (other / "manifest.json").write_text("{corrupt")
    assert "manifest is not readable JSON" in dare("show", other).stderr


def test_show_refuses_names_that_the_run_does_not_have(dare, make_run):
    run = make_run("a", records(A))
    for option in ("--model", "--bench"):
        done = dare("show", run, option, "nobody")
        assert done.returncode == 2 and "of this run 'nobody'" in done.stderr and "allowed" in done.stderr
