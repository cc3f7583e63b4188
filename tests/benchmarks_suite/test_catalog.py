"""The catalog, the generated configs and the model configs agree with one another and with the preset table."""

from __future__ import annotations

import ast
import re

import pytest

from dare_eval import presets
from dare_eval.errors import UsageError
from dare_eval.presets.catalog import RunText, benchmarks, catalog, model_of
from dare_eval.presets.listing import LISTS, preset_lines
from tests.benchmarks_suite.stock_configs import FOLDER, stock_files
from tests.conftest import ROOT

REMEDY = "python -m tests.benchmarks_suite.stock_configs writes it again"


def literal_model(path) -> dict:
    """Return the keyword arguments of the one model a config file defines."""
    assigned = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign))
    [call] = assigned.value.elts
    found = {}
    for keyword in call.keywords:
        value = keyword.value
        if isinstance(value, ast.Call):
            found[keyword.arg] = {inner.arg: ast.literal_eval(inner.value) for inner in value.keywords}
        else:
            found[keyword.arg] = value.id if isinstance(value, ast.Name) else ast.literal_eval(value)
    return found


@pytest.mark.parametrize("name", stock_files())
def test_generated_config_is_what_the_generator_writes(name):
    text = (FOLDER / name).read_text()
    assert text == stock_files()[name], REMEDY
    assert text.count("\n") <= 15
    assert not re.search(r"gen_length|steps|block_length|threshold", text), "presets hold the values"


def test_every_family_has_every_required_config():
    for family in ("llada", "llada_moe", "dream", "sdar", "sdar_moe", "llada2", "llada21"):
        for name in ("gsm8k", "math500", "humaneval", "sudoku", "countdown", "arc_c_ppl"):
            assert (FOLDER / f"{family}_{name}.py").is_file()


@pytest.mark.parametrize("model", presets.models())
def test_model_config_says_what_the_table_says(model):
    about = presets.entry(model)
    path = ROOT / "configs" / "models" / (about["config"].replace(".", "/") + ".py")
    found = literal_model(path)
    assert found["type"] == about["wrapper"]
    assert found["path"] == about["path"]
    assert found["abbr"] == found["decoding"]["preset"] == model
    assert set(found["decoding"]) == {"preset", "dtype"}
    assert found["run_cfg"]["num_gpus"] >= 1


def test_suites_and_families_name_known_things():
    for members in catalog()["suites"].values():
        assert benchmarks(members) == members
    for family in catalog()["families"]:
        for name in ("gsm8k", "arc_c_ppl"):
            assert model_of(family, name) in presets.models()
    assert len(benchmarks(suites=["dare12"])) == 12
    published = {"countdown_d1", "sudoku_d1"}
    suites = catalog()["suites"]
    assert set(suites["all"]) == set(catalog()["benchmarks"]) - set(suites["likelihood"]) - published
    assert set(suites["d1"]) == {"gsm8k", "math500", *published}
    assert set(suites["planning"]) == {"countdown", "sudoku"}
    assert set(suites["code"]) == {"humaneval", "humaneval_plus", "mbpp", "sanitized_mbpp", "livecodebench"}
    assert suites["stress"] == ["list_ops"]
    assert benchmarks(["gsm8k", "math500"], ["d1"]) == ["gsm8k", "math500", "countdown_d1", "sudoku_d1"]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UsageError, match="gsm8k"):
        benchmarks(["gms8k"])
    with pytest.raises(UsageError, match="planning"):
        benchmarks(suites=["planing"])
    with pytest.raises(UsageError, match="llada-8b-instruct"):
        str(RunText(["llada-8b-instrct"], ["gsm8k"], "runs/x"))


def test_likelihood_forms_are_told_apart_by_their_names():
    text = str(RunText(["llada-8b-base"], ["arc_c", "arc_c_ppl"], "runs/x"))
    assert 'dict(one, abbr=one["abbr"] + "-ppl") for one in arc_c_ppl' in text


def test_several_models_and_changes():
    text = str(RunText(["llada-8b-base", "dream-7b-base"], ["gsm8k"], "runs/x", changes={"decoding.cache": "none"}))
    assert "models = [*m0, *m1]" in text
    assert 'models[1]["decoding"]["cache"] = \'none\'' in text
    compile(text, "config", "exec")


def test_an_engine_takes_the_place_of_the_wrapper(monkeypatch):
    monkeypatch.setitem(catalog()["engines"], "recorded", {"wrapper": "dare_eval.models.replay:ReplayModel"})
    text = str(RunText(["sdar-8b-chat"], ["gsm8k"], "runs/x", engine="recorded"))
    assert "from dare_eval.models.replay import ReplayModel" in text
    assert 'models[0]["type"] = ReplayModel' in text
    assert 'models[0]["abbr"] += "-recorded"' in text
    compile(text, "config", "exec")
    with pytest.raises(UsageError, match="recorded"):
        str(RunText(["sdar-8b-chat"], ["gsm8k"], "runs/x", engine="recorder"))


def test_likelihood_presets_have_their_own_rows():
    arc = presets.find_likelihood("llada-8b-base", "arc_c")
    assert arc.decoding == {"mc_num": 128, "strata": 8, "cfg_scale": 0.5}
    assert arc.score == 47.9
    assert presets.find_likelihood("llada-8b-base", "mmlu").decoding["mc_num"] == 1
    assert presets.find_likelihood("sdar-8b-chat", "arc_c").decoding == {}
    assert "no row" in presets.find_likelihood("dream-7b-base", "arc_c").source
    bound = presets.bind_likelihood({"mc_num": 4}, "llada-8b-base", "arc_c")
    assert bound == {"mc_num": 4, "strata": 8, "cfg_scale": 0.5}


def test_lists_are_rows_of_equal_keys():
    for lines in (make() for make in LISTS.values()):
        assert lines
        assert len({tuple(line) for line in lines}) == 1
    assert any(line["benchmark"] == "arc_c (likelihood)" for line in preset_lines())


@pytest.mark.parametrize("kind", LISTS)
def test_ls_prints_them(cli, kind):
    done = cli("dare-eval", "ls", kind, "--json")
    assert done.returncode == 0
    assert done.stdout.startswith("[")
    wrong = cli("dare-eval", "ls", kind[:-1] + "z")
    assert wrong.returncode == 2
    assert kind in wrong.stderr
