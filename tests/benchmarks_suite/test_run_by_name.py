"""``dare-eval run --model ... --bench ...``: the config it writes, and what it refuses."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("opencompass")


def test_planning_suite_by_name(stocked):
    done = stocked.run(
        "run", "--model", "dream-7b-instruct", "--suite", "planning", "--limit", "1",
        "--set", "gen_length=16", "--set", "steps=8", program="dare-eval",
    )  # fmt: skip
    assert done.code == 0, done.text
    rows = {row["dataset"]: row for row in done.report if row["metric"] == "exact"}
    assert set(rows) == {"countdown3-chat", "sudoku4-chat"}
    for row in rows.values():
        assert row["decode_spec"]["gen_length"] == 16
        assert row["decode_spec"]["temperature"] == 0.2  # of the preset
        assert "subset: first 1" in row["labels"]
    written = done.run.parent / "config.py"
    again = stocked.run(written, "-r")
    assert "Partitioned into 0 tasks" not in again.text  # the limit was an option, not part of the config
    assert written.read_text().count("\n") < 20


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", "llada-8b-instrct", "--bench", "gsm8k"], "did you mean 'llada-8b-instruct'"),
        (["--model", "llada-8b-instruct", "--bench", "gms8k"], "did you mean 'gsm8k'"),
        (["--model", "llada-8b-instruct", "--suite", "dare-12"], "did you mean 'dare12'"),
        (["--model", "llada-8b-instruct"], "no benchmark is named"),
        (["--model", "llada-8b-instruct", "--bench", "gsm8k", "--engine", "natve"], "did you mean 'native'"),
        (["--bench", "gsm8k"], "nothing to evaluate"),
        ([], "nothing to evaluate"),
        (["--model", "llada-8b-instruct", "--bench", "sudoku", "--set", "cache"], "--set takes key=value"),
        (["--model", "llada-8b-instruct", "--bench", "sudoku", "--set", "cahce=dual"], "did you mean 'cache'"),
        (["--model", "llada-8b-base,llada-8b-instruct", "--bench", "sudoku", "--path", "x"], "one model"),
        ([str(ROOT / "configs/eval/tiny_sudoku.py"), "--bench", "gsm8k"], "a config has its own models"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_way_out(stocked, arguments, named):
    done = stocked.run("run", *arguments, program="dare-eval")
    assert done.code == 2, done.text
    assert named in " ".join(done.text.split())


def test_an_absent_checkpoint_says_which_variable_to_set(workplace):
    done = workplace.run("run", "--model", "sdar-4b-chat", "--bench", "sudoku", program="dare-eval")
    assert done.code == 4
    assert "DARE_MODEL_" in done.text
    assert "SDAR_4B_CHAT" in done.text
