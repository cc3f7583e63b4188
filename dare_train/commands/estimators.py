"""``dare-train estimators``: bias and spread of likelihood estimates on a checkpoint, and how many samples to take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dare_train.commands.options import Overrides


def estimators(
    checkpoint: Annotated[str, typer.Argument(help="Shipped name, checkpoint folder or hub id.")],
    config: Annotated[
        Path | None, typer.Option("--config", help="RL config with task and rollout; default: the shipped model's.")
    ] = None,
    overrides: Overrides = None,
    rows: Annotated[str, typer.Option("--rows", help="Noised rows per estimate, comma-separated.")] = "1,2,4,8,16",
    responses: Annotated[int, typer.Option("--responses", min=2, help="Responses sampled and estimated.")] = 16,
    repeats: Annotated[int, typer.Option("--repeats", min=2, help="Draws of each estimate.")] = 16,
    target_std: Annotated[
        float, typer.Option("--target-std", min=1e-6, help="Spread (nats per response) that the chosen number meets.")
    ] = 1.0,
    output: Annotated[Path | None, typer.Option("--output", help="JSON file to write.")] = None,
) -> None:
    """Show how biased and how noisy each estimate of a response's likelihood is, and choose the Monte-Carlo samples."""
    from dare_train.rl.estimators_run import run_report

    run_report(
        checkpoint,
        config,
        overrides or [],
        rows=rows,
        responses=responses,
        repeats=repeats,
        target_std=target_std,
        output=output,
    )
