"""``dare-train show``: what a run did, as a table of its curve and, after reinforcement learning, its completions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    run: Annotated[Path, typer.Argument(help="Folder of a training run.")],
    step: Annotated[int | None, typer.Option("--step", help="Samples of the rollout at or before this step.")] = None,
    samples: Annotated[int, typer.Option("--samples", min=0, help="Prompts shown with their completions.")] = 2,
    lines: Annotated[int, typer.Option("--lines", min=1, help="Lines of the curve.")] = 12,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only completions that are wrong or unscored.")] = False,
    steps: Annotated[bool, typer.Option("--order", help="Show the step at which each token was fixed.")] = False,
) -> None:
    """Show settings, curve and samples of RUN."""
    from dare_eval.panels import output_console
    from dare_train.rl.show import show_run

    show_run(run, output_console(), step=step, samples=samples, lines=lines, wrong=wrong, order=steps)
