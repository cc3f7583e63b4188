"""Options that every training verb has, and the way a verb goes from them to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path | None, typer.Option("--config", help="YAML file with the settings.", show_default=False)]
Algo = Annotated[str | None, typer.Option("--algo", help="Name of the algorithm; replaces algo.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Override one setting, as a.b=value; repeatable.")]
OutputDir = Annotated[str | None, typer.Option("--output-dir", help="Folder of the run; replaces output_dir.")]
ShowConfig = Annotated[bool, typer.Option("--show-config", help="Print the resolved settings and stop.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, estimate memory and time, and stop.")]
ThenEval = Annotated[bool, typer.Option("--then-eval", help="Evaluate the result and compare it with its baseline.")]
EvalConfig = Annotated[
    str | None, typer.Option("--eval-config", help="OpenCompass config of that evaluation; replaces evaluation.config.")
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", help="Shipped name, checkpoint folder or run folder to compare with; default: the parent."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Move an earlier run in output_dir aside and start again.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used and count them; the default stops.")
]
Track = Annotated[
    list[str] | None, typer.Option("--track", help="Training curves also to tensorboard, wandb or trackio; repeatable.")
]
Sp = Annotated[int | None, typer.Option("--sp", min=1, help="Processes that share the columns of each row (Ulysses).")]
Quantize = Annotated[str | None, typer.Option("--quantize", help="4bit: frozen weights in 4 bits; needs model.lora.")]
Nproc = Annotated[int, typer.Option("--nproc", min=1, help="Train in so many processes on this machine (torchrun).")]
