"""What a person sees while a run trains: step, loss, learning rate, tokens per second, time left.

On a terminal one live line; otherwise about ten plain lines per run, so that log files stay short.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class TrainingProgress:
    """Shows steps ``start`` to ``total``; silent in processes that do not lead."""

    def __init__(self, console: Console, *, start: int, total: int, shown: bool = True) -> None:
        self.console, self.start, self.total, self.shown = console, start, total, shown
        self._live = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._live.add_task("training", total=total, completed=start, numbers="")
        self._every = max(1, (total - start + 9) // 10)
        self._began_s = time.monotonic()

    def __enter__(self) -> TrainingProgress:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, step: int, numbers: Mapping[str, float]) -> None:
        """Show that ``step`` steps are done, with the numbers of the last one."""
        text = "  ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        self._live.update(self._task, completed=step, numbers=text)
        due = (step - self.start) % self._every == 0 or step == self.total
        if self.shown and not self.console.is_terminal and due:
            passed_s = time.monotonic() - self._began_s
            self.console.print(f"step {step}/{self.total}  {text}  {passed_s:.0f} s", highlight=False)
