from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dare_eval.commands.options import takes
from dare_train.cli import app as train


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    place: Annotated[str, typer.Argument()]
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N.")] = None
    change: Annotated[list[str] | None, typer.Option("--set")] = None
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreOptions(Options):
    seeds: int = 3


def called(kind, *arguments, **settings):
    got = []

    @takes(kind, **settings)
    def look(options):
        """Look at PLACE."""
        got.append(options)

    app = typer.Typer()
    app.command()(look)
    return CliRunner().invoke(app, list(arguments)), got


def test_a_command_gets_one_object_of_its_options():
    done, got = called(Options, "here", "--limit", "2", "--set", "a=1", "--set", "b=2", "--fresh")
    assert done.exit_code == 0
    assert got == [Options(place="here", limit=2, change=["a=1", "b=2"], fresh=True)]
    assert called(Options, "here")[1] == [Options(place="here")]


@pytest.mark.parametrize("arguments", [(), ("here", "--limit", "0"), ("here", "--limit", "x"), ("here", "--other")])
def test_typer_checks_the_options(arguments):
    done, got = called(Options, *arguments)
    assert (done.exit_code, got) == (2, [])


def test_options_stand_in_the_order_of_the_fields_with_those_of_the_parent_first():
    @takes(MoreOptions, leaving_out=["change"])
    def look(options):
        """Look at PLACE."""

    assert list(inspect.signature(look).parameters) == ["place", "limit", "fresh", "seeds"]
    assert (look.__name__, look.__doc__) == ("look", "Look at PLACE.")


def test_an_option_left_out_is_unknown_and_keeps_its_default():
    done, got = called(Options, "here", "--limit", "2", leaving_out=["limit"])
    assert (done.exit_code, got) == (2, [])
    assert called(Options, "here", leaving_out=["limit"])[1] == [Options(place="here")]


def test_training_verbs_share_their_options():
    shared = [
        "config",
        "overrides",
        "output_dir",
        "show_config",
        "dry_run",
        "then_eval",
        "eval_config",
        "baseline",
        "fresh",
        "skip_bad",
        "nproc",
        "sp",
    ]
    own = {
        "pretrain": ["track"],
        "sft": ["quantize", "track"],
        "preference": ["algo", "quantize", "track"],
        "rl": ["algo", "quantize", "task"],
    }
    verbs = typer.main.get_command(train).commands
    for verb, names in own.items():
        known = [one.name for one in verbs[verb].params]
        assert sorted(known) == sorted([*shared, *names]), verb
        assert [name for name in known if name in shared] == shared
