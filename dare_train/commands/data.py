"""``dare-train data``: what becomes of rows before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dare_train.commands.options import Config, Overrides, SkipBad

data = typer.Typer(help="Prepare training rows.", no_args_is_help=True)


@data.command()
def prepare(
    output: Annotated[Path, typer.Option("--output", help="Parquet file to write.")],
    config: Config = None,
    overrides: Overrides = None,
    skip_bad: SkipBad = False,
) -> None:
    """Tokenise the rows of an sft config once; data.prepared = FILE then reads them without rendering again."""
    from dare_eval.panels import output_console
    from dare_train.config import SftConfig
    from dare_train.data.prepared import rendering_digest, write_prepared
    from dare_train.reading import read_examples, skipped_text
    from dare_train.settings import load_config
    from dare_train.setup import plan_model

    skip = ["data.on_bad_row=skip"] if skip_bad else []
    settings = load_config(SftConfig, config, [*(overrides or []), *skip])
    plan = plan_model(settings.model)
    rows = read_examples(plan, settings.data.model_copy(update={"streaming": False, "prepared": None}))
    write_prepared(output, rows.kept, rendering_digest(plan.tokenizer, settings.data), dict(rows.record["sources"]))
    left_out = skipped_text(rows.record)
    output_console().print(f"{len(rows.kept):,} rows: {output}" + (f"; {left_out}" if left_out else ""), soft_wrap=True)


@data.callback()
def _verbs() -> None:
    """Keep 'prepare' a sub-command even while there is one."""
