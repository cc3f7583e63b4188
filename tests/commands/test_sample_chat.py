"""``dare-eval sample`` and ``chat`` on the shipped models, piped and in a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from dare_eval.cli import app
from dare_eval.commands import denoising_view, terminal
from dare_eval.decoding import Reveal
from dare_eval.errors import DataError, UsageError
from dare_eval.networks.paths import ASSETS, packaged_models

PROMPT = ["--prompt", "3 5 7 = 26"]


def run(*arguments, input=None):
    return CliRunner().invoke(app, list(arguments), input=input)


def test_piped_output_is_the_answer_and_the_cost_goes_to_stderr():
    done = run("sample", "tiny-countdown", *PROMPT)
    assert done.exit_code == 0, done.output
    found = json.loads(run("sample", "tiny-countdown", *PROMPT, "--json").stdout)
    assert done.stdout == found["text"] + "\n"
    assert done.stderr.startswith("NFE 5, 1.00 tokens/forward, ")


def test_settings_change_the_forwards_and_the_trace_is_the_step_map():
    found = json.loads(run("sample", "tiny-countdown", *PROMPT, "--set", "steps=3", "--json").stdout)
    assert found["nfe"] == 3 and found["decode_spec"]["steps"] == 3
    done = run("sample", "tiny-countdown", "--set", "steps=3", "--trace", input="3 5 7 = 26\n")
    lines = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    assert len(lines) == 3
    for step, line in enumerate(lines):
        places = [int(part.split()[0]) for part in line.partition("revealed ")[2].split(", ")]
        assert sorted(places) == [p for p, when in enumerate(found["step_map"]) if when == step]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "steps"], "not key=value"),
        (["--set", "steps=99"], "steps 99 cannot be spread"),
        (["--set", "stepz=3"], "did you mean 'steps'"),
        (["--preset", "gsm8k"], "unknown preset model"),
        (["--set", "gen_length=60", "--set", "block_length=60"], "longer than the context"),
        (["--set", "gen_length=64", "--set", "block_length=64"], "gen_length = block_length = 32"),
        (["--set", "gen_length=[1"], "the value of 'gen_length' cannot be read"),
        (["--set", "stop_ids=[7, 5000]"], "5000"),
        (["--set", "cache=block"], "cache 'block' does not work"),
        (["--set", "policy=null"], "unknown decoding policy 'None'"),
        (["--set", "policy="], "unknown decoding policy 'None'"),
        (["--set", "policy=1"], "unknown decoding policy '1'"),
        (["--set", "parity=null"], "'parity' is out of range: None"),
        (["--set", "parity=1"], "'parity' is out of range: 1"),
        (["--device", "cdua"], "did you mean 'cuda'"),
        (["--dtype", "bfloat"], "did you mean 'bfloat16'"),
        (["--prompt", "  "], "there is no prompt"),
    ],
)
def test_wrong_settings_are_refused(arguments, said):
    done = run("sample", "tiny-countdown", *PROMPT, *arguments)
    assert isinstance(done.exception, UsageError | DataError) and said in str(done.exception)


def test_numbers_may_be_written_with_an_exponent():
    done = run("sample", "tiny-countdown", *PROMPT, "--set", "temperature=1e-1", "--json")
    assert json.loads(done.stdout)["decode_spec"]["temperature"] == 0.1


def test_missing_prompt_and_missing_model_are_named():
    assert "there is no prompt" in str(run("sample", "tiny-countdown", input="").exception)
    assert "did you mean 'tiny-countdown'" in str(run("sample", "tiny-countdwn", *PROMPT).exception)


def test_chat_keeps_the_history_obeys_commands_and_survives_errors(monkeypatch):
    asked = []
    answer = terminal.Terminal.answer
    monkeypatch.setattr(
        terminal.Terminal, "answer", lambda self, turns, view: asked.append(turns) or answer(self, turns, view)
    )
    talk = "3 5 7 = 26\n/bogus\n/set steps=99\n/set steps=1\n4 5 6 = 26\n/reset\n1 2 3 = 6\n/quit\n9 9 9 = 9\n"
    done = run("chat", "tiny-countdown", input=talk)
    assert done.exit_code == 0, done.output
    assert [[turn["role"] for turn in turns] for turns in asked] == [["HUMAN"], ["HUMAN", "BOT", "HUMAN"], ["HUMAN"]]
    assert asked[1][1]["prompt"] == done.stdout.splitlines()[0]
    costs = [line.split(",")[0] for line in done.stderr.splitlines() if line.startswith("NFE")]
    assert costs == ["NFE 5", "NFE 1", "NFE 1"]
    assert "unknown command '/bogus'" in done.stderr and "steps 99" in done.stderr


@pytest.mark.parametrize("strict", ["utf-8:strict", None])
def test_bytes_that_are_no_text_end_no_conversation(strict, tmp_path):
    env = {**os.environ, **({"PYTHONIOENCODING": strict} if strict else {})}

    def shell(*arguments, typed):
        command = [sys.executable, "-c", "from dare_eval.cli import main; main()", *arguments, "tiny-countdown"]
        return subprocess.run(command, input=typed, capture_output=True, env=env, cwd=tmp_path, check=False)

    talk = shell("chat", typed=b"3 5\n\xff\xfe bad\n3 5 7 = 26\n")
    assert talk.returncode == 0 and len(talk.stdout.splitlines()) == 2
    assert b"the byte 0xff" in talk.stderr and b"Traceback" not in talk.stderr
    once = shell("sample", typed=b"3 5\xff")
    assert once.returncode == 4 and b"the byte 0xff" in once.stderr and b"Traceback" not in once.stderr


def test_history_that_outgrows_the_context_is_said_and_forgotten_by_reset():
    done = run("chat", "tiny-countdown", input="3 5 7 = 26\n" * 9 + "/reset\n3 5 7 = 26\n")
    assert done.exit_code == 0 and "longer than the context" in done.stderr
    assert len(set(done.stdout.splitlines()[:1] + done.stdout.splitlines()[-1:])) == 1


def test_live_view_draws_every_token_in_the_colour_of_its_step():
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    view = denoising_view.LiveView(lambda token: f"<{token}>", 4, 4, console)
    with view:
        view.watch(Reveal(0, 0, [2], [7], False))
        view.watch(Reveal(0, 3, [0, 1], [8, 9], False))
        assert view.text().plain == f"<8><9><7>{denoising_view.MASK}"
        view.watch(Reveal(0, 3, [2], [5], True))
    drawn = console.file.getvalue()
    assert "<5>" in drawn and "1 masks left" in drawn
    assert view.lines[-1] == "step 3: replaced 2 '<5>'"
    styles = [str(span.style) for span in view.text().spans]
    assert styles[0] == styles[1] == denoising_view.colour(3, 4)
    assert denoising_view.colour(0, 4) != denoising_view.colour(3, 4)


def test_a_model_cannot_drive_the_terminal():
    assert denoising_view.printable("a\x1b[2Jb\r\nc") == "a\ufffd[2Jb\ufffd\nc"


def test_every_shipped_checkpoint_says_how_it_answers():
    stated = yaml.safe_load((ASSETS / "decoding.yaml").read_text())
    assert set(stated) == set(packaged_models())
