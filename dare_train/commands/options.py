"""Options of the training verbs, each stated once; some verbs and commands take only a few of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path | None, typer.Option("--config", help="YAML file with the settings.", show_default=False)]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Override one setting, as a.b=value; repeatable.")]
OutputDir = Annotated[str | None, typer.Option("--output-dir", help="Folder of the run; replaces output_dir.")]
ShowConfig = Annotated[bool, typer.Option("--show-config", help="Print the resolved settings and stop.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used and count them; the default stops.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbOptions:
    """The options of a command line that trains."""

    config: Config = None
    algo: Annotated[str | None, typer.Option(help="Name of the algorithm; replaces algo.")] = None
    task: Annotated[
        str | None, typer.Option(help="The recipe's settings for another task: math, code, countdown, sudoku.")
    ] = None
    overrides: Overrides = None
    output_dir: OutputDir = None
    show_config: ShowConfig = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, estimate memory and time, and stop.")
    ] = False
    then_eval: Annotated[
        bool, typer.Option("--then-eval", help="Evaluate the result and compare it with its baseline.")
    ] = False
    eval_config: Annotated[
        str | None, typer.Option(help="OpenCompass config of that evaluation; replaces evaluation.config.")
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(help="Shipped name, checkpoint folder or run folder to compare with; default: the parent."),
    ] = None
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Move an earlier run in output_dir aside and start again."),
    ] = False
    skip_bad: SkipBad = False
    nproc: Annotated[int, typer.Option(min=1, help="Train in so many processes on this machine (torchrun).")] = 1
    sp: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that share the columns of each row (Ulysses)."),
    ] = None
    quantize: Annotated[str | None, typer.Option(help="4bit: frozen weights in 4 bits; needs model.lora.")] = None
    track: Annotated[
        list[str] | None, typer.Option(help="Training curves also to tensorboard, wandb or trackio; repeatable.")
    ] = None

    def arguments(self) -> list[str]:
        """Return the options that train the same without evaluating."""
        config = ["--config", str(self.config)] if self.config else []
        overrides = [part for override in self.all_overrides() for part in ("--set", override)]
        return [*config, *overrides, *(["--fresh"] if self.fresh else [])]

    def all_overrides(self) -> list[str]:
        """Return ``--set`` values and the options that stand for one."""
        named = {
            "algo": self.algo,
            "output_dir": self.output_dir,
            "evaluation.config": self.eval_config,
            "evaluation.baseline": self.baseline,
            "data.on_bad_row": "skip" if self.skip_bad else None,
            "train.sequence_parallel": self.sp,
            "model.quantize": self.quantize,
            "train.track": f"[{', '.join(self.track)}]" if self.track else None,
        }
        return [*(self.overrides or []), *(f"{key}={value}" for key, value in named.items() if value is not None)]
