"""``dare-eval index FOLDER``: rebuild the store from run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def index(
    folder: Annotated[Path, typer.Argument(help="Folder that holds runs, also of plain OpenCompass.")] = Path("runs"),
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None,
) -> None:
    """Read every run and checkpoint below FOLDER into the store; nothing there is overwritten or removed.

    Exit code 4 when a folder could not be read; the others are indexed all the same.
    """
    from rich.text import Text

    from dare_eval.errors import DataError
    from dare_eval.panels import output_console
    from dare_eval.records.index import index_folders
    from dare_eval.records.safe import one_line
    from dare_eval.records.store import Store

    store = Store(db)
    report = index_folders(store, folder)
    console = output_console()
    for note in report.notes:
        console.print(Text(f"note: {one_line(note, 200)}", style="yellow"))
    console.print(
        f"{report.evaluations} runs ({report.read} new or changed), {report.checkpoints} checkpoints "
        f"in {store.engine.url.render_as_string(hide_password=True)}\nnext: dare-eval ls runs"
    )
    if report.problems:
        raise DataError(
            f"{len(report.problems)} folders could not be indexed",
            seen="\n".join(report.problems),
            remedy="repair or remove them; all others are in the store",
        )
