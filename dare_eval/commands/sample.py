"""``dare-eval sample MODEL --prompt ...``: one answer in the terminal, denoised before your eyes."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dare_eval.commands.options import takes

if TYPE_CHECKING:
    from rich.console import Console

    from dare_eval.commands.denoising_view import View
    from dare_eval.commands.terminal import Terminal

Settings = Annotated[list[str] | None, typer.Option("--set", help="Decode setting, key=value; repeatable.")]
Preset = Annotated[str | None, typer.Option(help="Benchmark whose settings for MODEL apply, such as gsm8k.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
Dtype = Annotated[str, typer.Option(help="Compute type: float32, bfloat16, float16.")]
Trace = Annotated[bool, typer.Option("--trace", help="List which positions were revealed at which step.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """The options of one answer."""

    model: Annotated[str, typer.Argument(help="Shipped name, name of the preset table, folder or hub id.")]
    prompt: Annotated[str | None, typer.Option("--prompt", "-p", help="The prompt; default: standard input.")] = None
    settings: Settings = None
    preset: Preset = None
    raw: Annotated[bool, typer.Option("--raw", help="Continue the text as it is, without a chat template.")] = False
    device: Device = "auto"
    dtype: Dtype = "float32"
    trace: Trace = False
    as_json: Annotated[bool, typer.Option("--json", help="Print answer, cost and step map as JSON.")] = False


@takes(SampleOptions)
def sample(options: SampleOptions) -> None:
    """Decode one answer and show which positions were revealed at which step, and what it cost.

    Piped, the answer alone goes to standard output. Example: dare-eval sample tiny-countdown -p "3 5 7 = 26"
    """
    from dare_eval.commands.terminal import cost_line, open_terminal
    from dare_eval.errors import UsageError

    asked = options.prompt
    if asked is None:
        keep_odd_bytes()
        asked = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    if not asked.strip():
        raise UsageError("there is no prompt", remedy='--prompt "..." or a text on standard input')
    opened = open_terminal(
        options.model,
        settings=options.settings or [],
        preset=options.preset,
        raw=options.raw,
        device=options.device,
        dtype=options.dtype,
    )
    console = stdout_console()
    view = view_for(opened, console, live=console.is_terminal and not options.as_json)
    result = opened.answer(asked, view)
    if options.as_json:
        names = ("text", "tokens", "nfe", "nfe_by_block", "generated_tokens", "wall_s", "step_map", "edits", "stop")
        found = {name: getattr(result, name) for name in names}
        typer.echo(json.dumps({**found, "decode_spec": opened.spec.to_dict()}, indent=1))
        return
    show_answer(console, view, result.text, trace=options.trace)
    typer.echo(cost_line(result), err=not console.is_terminal)


def keep_odd_bytes() -> None:
    """Let standard input hold bytes that are no UTF-8, so that their prompt alone is refused."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        with contextlib.suppress(io.UnsupportedOperation):  # something of it was read before this command began
            sys.stdin.reconfigure(errors="surrogateescape")


def stdout_console() -> Console:
    """Return the console on standard output."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def view_for(opened: Terminal, console: Console, *, live: bool) -> View:
    """Return the view of one answer: live in a terminal, else a silent one."""
    from dare_eval.commands.denoising_view import LiveView, View, pieces

    spec = opened.spec
    piece, gap = pieces(opened.codec.tokenizer)
    steps = spec.steps or spec.gen_length
    return LiveView(piece, spec.gen_length, steps, console, gap) if live else View(piece, spec.gen_length, steps)


def show_answer(console: Console, view: View, text: str, *, trace: bool) -> None:
    """Print what the view did not: the steps, and outside a terminal the answer."""
    from dare_eval.commands.denoising_view import legend, printable

    if trace:
        for line in view.lines:
            console.out(line, highlight=False)
    if console.is_terminal:
        console.print(legend(max(view.forwards - 1, 0)))
    else:
        console.out(printable(text), highlight=False)
