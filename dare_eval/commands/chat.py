"""``dare-eval chat MODEL``: a conversation in the terminal; the history goes through the checkpoint's chat template."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dare_eval.commands.sample import Device, Dtype, Preset, Settings, Trace

if TYPE_CHECKING:
    from rich.console import Console

    from dare_eval.commands.terminal import Terminal

HELP = "/set key=value changes a decode setting, /show lists them, /reset forgets the conversation, /quit ends"


def chat(
    model: Annotated[str, typer.Argument(help="Shipped name, name of the preset table, folder or hub id.")],
    system: Annotated[str | None, typer.Option(help="System turn in front of the conversation.")] = None,
    settings: Settings = None,
    preset: Preset = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    trace: Trace = False,
) -> None:
    """Talk to a model; each answer is denoised before your eyes, with its NFE and speed below.

    Standard input may be piped, one user turn per line. Example: dare-eval chat llada-8b-instruct --preset gsm8k
    """
    from dare_eval.commands.sample import keep_odd_bytes, stdout_console
    from dare_eval.commands.terminal import open_terminal

    opened = open_terminal(model, settings=settings or [], preset=preset, raw=False, device=device, dtype=dtype)
    console = stdout_console()
    keep_odd_bytes()
    talk = Conversation(opened, console, system, trace)
    if sys.stdin.isatty():
        console.print(HELP, style="dim")
    for line in _lines(console):
        if not talk.take(line):
            return


class Conversation:
    """The turns so far, and what a line of the user does to them."""

    def __init__(self, opened: Terminal, console: Console, system: str | None, trace: bool) -> None:
        self.opened, self.console, self.trace = opened, console, trace
        self.start = [{"role": "SYSTEM", "prompt": system}] if system else []
        self.turns: list[dict[str, str]] = list(self.start)

    def take(self, line: str) -> bool:
        """Answer ``line`` or obey it when it is a command; returns False when the conversation ends."""
        from dare_eval.errors import DareError
        from dare_eval.panels import show_error

        if line in ("/quit", "/exit"):
            return False
        try:
            if line.startswith("/"):
                self._obey(line)
            elif line:
                self._answer(line)
        except DareError as error:  # a wrong setting or a full context ends neither the conversation nor the model
            show_error(error)
        return True

    def _answer(self, line: str) -> None:
        from dare_eval.commands.sample import show_answer, view_for
        from dare_eval.commands.terminal import cost_line

        asked = [*self.turns, {"role": "HUMAN", "prompt": line}]
        view = view_for(self.opened, self.console, live=self.console.is_terminal)
        result = self.opened.answer(asked, view)
        self.turns = [*asked, {"role": "BOT", "prompt": result.text}]
        show_answer(self.console, view, result.text, trace=self.trace)
        typer.echo(cost_line(result), err=not self.console.is_terminal)

    def _obey(self, line: str) -> None:
        from dare_eval.commands.terminal import Terminal, parse_settings
        from dare_eval.errors import unknown

        word, _, rest = line.partition(" ")
        if word == "/reset":
            self.turns = list(self.start)
        elif word == "/show":
            self.console.print(self.opened.spec.to_dict())
        elif word == "/set":
            changed = {**self.opened.settings, **parse_settings([rest])}
            _ = Terminal(self.opened.network, self.opened.codec, changed).spec  # refused before it takes effect
            self.opened.settings = changed
        else:
            raise unknown("command", word, ("/set", "/show", "/reset", "/quit"), remedy=HELP)


def _lines(console: Console) -> Iterator[str]:
    """Yield what the user says, until the end of input."""
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin)
        return
    while True:
        try:
            yield console.input("[bold]you>[/] ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
