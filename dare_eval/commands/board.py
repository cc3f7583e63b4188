"""``dare-eval board``: open the board in a browser, or write it as static pages (``--static DIR``).

The board is a program of its own (``leaderboard/app.py``); this command only starts it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def board(
    static: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write HTML pages into DIR (as for GitHub Pages) and end.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder whose runs are read first; default runs, or none with a store of yours.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the board.")] = 8501,
    address: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "localhost",
    db: Annotated[str | None, typer.Option(help="Store; default DARE_DB, else sqlite:///runs/.dare.db.")] = None,
) -> None:
    """Show results, cost and significance in a browser, as in: dare-eval board --port 8600."""
    import os
    import subprocess
    import sys

    environment = dict(os.environ)
    if db is not None:
        environment["DARE_DB"] = db
    if runs is not None:
        environment["DARE_RUNS"] = str(runs)
    if static is not None:
        command = [sys.executable, "-m", "leaderboard.snapshot", str(static)]
    else:
        options = {"server.port": port, "server.address": address, "server.headless": "true"}
        options |= {"browser.gatherUsageStats": "false", "client.toolbarMode": "minimal"}
        shown = [f"--{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-m", "streamlit", "run", str(_app()), *shown]
    try:
        raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _app() -> Path:
    """Return the board's program; raises ``SetupError`` when the package is not installed."""
    from importlib.util import find_spec

    from dare_eval.errors import SetupError

    found = find_spec("leaderboard")
    if found is None or found.origin is None:
        raise SetupError("the board is not installed", seen="no package 'leaderboard'", remedy="pip install -e .")
    return Path(found.origin).parent / "app.py"
