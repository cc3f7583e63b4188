"""The GitHub workflow and the action that users call: their commands are real, and the action's script runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dare_eval.presets.cards import known_cards
from tests.records.conftest import change_manifest, make_run

__all__ = ["change_manifest", "make_run"]

ROOT = Path(__file__).resolve().parents[1]
ACTION = ROOT / ".github" / "actions" / "report" / "action.yml"
FILES = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ACTION]
RIGHT = [k % 3 != 0 for k in range(30)]


def read(path):
    return yaml.safe_load(path.read_text())


def steps(path):
    found = read(path)
    if path == ACTION:
        return found["runs"]["steps"]
    return [step for job in found["jobs"].values() for step in job["steps"]]


def scripts(path):
    return [step["run"] for step in steps(path) if "run" in step]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_scripts_are_bash_and_take_no_text_of_strangers_as_code(path):
    assert scripts(path)
    for script in scripts(path):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        assert "${{" not in script, "inputs reach scripts through the environment"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_commands_name_verbs_and_options_that_exist(path):
    import typer

    from dare_eval.cli import app

    verbs = typer.main.get_command(app).commands
    lines = [line.strip() for script in scripts(path) for line in script.splitlines()]
    used = [re.split(r"\|\||;|\)", line)[0] for line in lines if line.startswith("dare-eval ")]
    assert used
    for line in used:
        words = shlex.split(line)
        known = {name for option in verbs[words[1]].params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_steps_use_published_actions_by_version_or_the_one_here(path):
    for step in steps(path):
        used = step.get("uses", "")
        if used.startswith("./"):
            inputs = read(ROOT / used / "action.yml")["inputs"]
            needed = {name for name, about in inputs.items() if about["required"]}
            assert needed <= set(step["with"]) <= set(inputs)
        elif used:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", used)
        else:
            assert "run" in step
    if path == ACTION:
        assert all(step["shell"] == "bash" for step in steps(path) if "run" in step)


def test_the_workflow_measures_every_card_of_a_shipped_model():
    (job,) = read(ROOT / ".github" / "workflows" / "cards.yml")["jobs"].values()
    listed = {one["card"] for one in job["strategy"]["matrix"]["include"]}
    assert listed == {card.name for card in known_cards().values() if card.weights and "@" not in card.name}
    assert len({one["name"] for one in job["strategy"]["matrix"]["include"]}) == len(listed)


def run_action(place, **inputs):
    """Run the script of the composite action as GitHub does and return the finished process."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **inputs}
    env |= {name: str(place / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (script,) = scripts(ACTION)
    command = ["bash", "-e", "-c", script]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(("steps_now", "code"), [(8, 0), (4, 3)])
def test_the_action_reports_summarises_and_fails_when_off(make_run, tmp_path, steps_now, code):
    first = make_run("a", RIGHT, weight_hash="w")
    second = make_run("b", RIGHT, weight_hash="w", spec={"steps": steps_now})
    done = run_action(tmp_path, RUNS=str(second), AGAINST=str(first), OUT="out report")
    assert done.returncode == code, done.stderr
    assert {path.name for path in (tmp_path / "out report").iterdir()} == {"report.md", "report.html", "report.xml"}
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "folder=out report\n"
    assert "# Reproducibility report" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()


def test_the_action_works_without_numbers_to_compare_with(make_run, tmp_path):
    runs = make_run("a", RIGHT), make_run("b", RIGHT, weight_hash="hash-a")
    done = run_action(tmp_path, RUNS="\n".join(map(str, runs)) + "\n", AGAINST="", OUT="out")
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "out" / "report.md").read_text()
    assert "b/2" in report and "a/2" in report, "a run per line: both are read, the second against the first"
