"""``dare-eval``: evaluate, inspect, compare and report diffusion language models.

Each command lives in ``dare_eval/commands``; this file only names them, so that ``dare-eval --help`` answers at once.
"""

from __future__ import annotations

import typer

from dare_eval.commands import (
    board,
    cards,
    chat,
    check,
    compare,
    data,
    export,
    index,
    ls,
    noise,
    plan,
    report,
    reproduce,
    run,
    sample,
    show,
    stability,
    sweep,
)
from dare_eval.panels import run_guarded

app = typer.Typer(
    name="dare-eval",
    help="Evaluate diffusion language models through OpenCompass; every score keeps its cost and its interval.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("check")(check.check)
app.command("env")(check.env)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("compare")(compare.compare)
app.command("index")(index.index)
app.command("ls")(ls.ls)
app.command("export")(export.export)
app.command("sweep")(sweep.sweep)
app.command("board")(board.board)
app.command("plan")(plan.plan)
app.command("sample")(sample.sample)
app.command("chat")(chat.chat)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("cards")(cards.cards)
app.command("stability")(stability.stability)
app.command("noise")(noise.noise)
app.add_typer(data.app, name="data")


def main() -> None:
    """Entry point of the ``dare-eval`` command."""
    run_guarded(app)
