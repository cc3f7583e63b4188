"""``dare-train``: train diffusion language models and score every checkpoint.

Each verb lives in ``dare_train/commands``; this file only names them, so that ``dare-train --help`` answers at once.
"""

from __future__ import annotations

import os
import time

import typer

from dare_eval.errors import DareError
from dare_eval.panels import run_guarded, show_error
from dare_train.commands.compare import compare
from dare_train.commands.data import data
from dare_train.commands.estimators import estimators
from dare_train.commands.export import export
from dare_train.commands.preference import preference
from dare_train.commands.pretrain import pretrain
from dare_train.commands.rl import rl
from dare_train.commands.sft import sft
from dare_train.commands.show import show
from dare_train.slurm import adopt_slurm_step

LAST_WORD_S = 5.0
"""How long a process that is not the first one waits before it says what failed."""

app = typer.Typer(
    name="dare-train",
    help="Train diffusion language models; every checkpoint is registered and can be scored against its parent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(pretrain)
app.command()(sft)
app.command()(preference)
app.command()(rl)
app.command()(compare)
app.command()(estimators)
app.command()(export)
app.command()(show)
app.add_typer(data, name="data")


def main() -> None:
    """Entry point of the ``dare-train`` command; of several processes that fail alike only the first one speaks."""
    run_guarded(adopt_slurm_step)
    if os.environ.get("RANK", "0") == "0":
        run_guarded(app)
        return
    try:
        app()
    except DareError as error:
        # Where the first process failed as well, the launcher ends this one while it waits.
        time.sleep(LAST_WORD_S)
        show_error(error)
        raise SystemExit(error.exit_code) from None
