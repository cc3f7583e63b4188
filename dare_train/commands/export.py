"""``dare-train export``: a checkpoint of any number of processes as a model folder with the original keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    checkpoint: Annotated[Path, typer.Argument(help="Run folder (its newest checkpoint) or one checkpoint of it.")],
    output: Annotated[
        Path | None, typer.Option("--out", "--output", help="Folder to write; default: export/ in the run folder.")
    ] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Add an adapter to its base and write whole weights.")] = False,
) -> None:
    """Write the weights of a checkpoint as Hugging Face files: config.json, safetensors, tokenizer."""
    from dare_eval.panels import output_console
    from dare_train.export import export_checkpoint

    folder = export_checkpoint(checkpoint, output, merge=merge)
    output_console().print(f"model: {folder}", soft_wrap=True)
