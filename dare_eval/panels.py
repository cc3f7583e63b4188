"""Shows a failure as one panel: what was wrong, the value seen, what is allowed, the remedy.

Used by the command lines only; libraries raise ``DareError`` and print nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from dare_eval.errors import DareError
from dare_eval.records.safe import visible


def error_console() -> Console:
    """Return the console for failures; wide enough that paths stay on one line when output is piped."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else 160)


def output_console() -> Console:
    """Return the console for tables and reports; as wide as the terminal, 160 columns when output is piped."""
    return Console(width=None if sys.stdout.isatty() else 160)


def show_error(error: DareError, console: Console | None = None) -> None:
    """Print ``error`` as one panel on standard error; what would act on a terminal is written out."""
    body = Text(visible(error.what), style="bold")
    for label, value in (("seen", error.seen), ("allowed", error.allowed), ("remedy", error.remedy)):
        if value not in (None, ""):
            body.append(f"\n{label:>7}: ", style="cyan")
            body.append(visible(value), style="not bold")
    title = f"{type(error).__name__} (exit code {error.exit_code})"
    (console or error_console()).print(Panel(body, title=title, border_style="red", title_align="left"))


def run_guarded(app: Callable[..., object]) -> None:
    """Run a command line; a ``DareError`` becomes a panel and its exit code (trace with ``DARE_DEBUG=1``)."""
    try:
        app()
    except DareError as error:
        if os.environ.get("DARE_DEBUG"):
            raise
        show_error(error)
        raise SystemExit(error.exit_code) from None
