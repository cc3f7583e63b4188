"""How an answer is shown while it forms: live in a terminal, each token coloured by the step that revealed it.

Piped output gets no live view: the text alone, and with ``--trace`` one line per step with positions and tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from dare_eval.decoding import Reveal

MASK = "\u2591"
COLOURS = ((90, 160, 255), (80, 220, 120), (255, 220, 60), (255, 90, 60))
"""From the first step to the last; no two look alike where a terminal has few colours."""
_MIN_FRAME_S = 0.05


class View:
    """Shows nothing and keeps what happened; base of the live view."""

    def __init__(self, piece: Callable[[int], str], length: int, steps: int) -> None:
        self.piece, self.steps = piece, max(steps, 1)
        self.cells: list[tuple[str, int] | None] = [None] * length
        self.lines: list[str] = []
        self.forwards = 0

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def watch(self, reveal: Reveal) -> None:
        """Note what one pass revealed or replaced."""
        self.forwards = max(self.forwards, reveal.step + 1)
        shown = []
        for position, token in zip(reveal.positions, reveal.tokens, strict=True):
            text = printable(self.piece(token))
            self._place(position, text, reveal.step)
            shown.append(f"{position} {text!r}")
        verb = "replaced" if reveal.edited else "revealed"
        self.lines.append(f"step {reveal.step}: {verb} {', '.join(shown)}")

    def _place(self, position: int, text: str, step: int) -> None:
        if position >= len(self.cells):  # a block grid may reach beyond gen_length
            self.cells += [None] * (position + 1 - len(self.cells))
        self.cells[position] = (text, step)

    def text(self, gap: str = "") -> Text:
        """Return the response as it stands, masks included."""
        shown = Text()
        for number, cell in enumerate(self.cells):
            if number and gap:
                shown.append(gap)
            if cell is None:
                shown.append(MASK, style="dim")
            else:
                shown.append(cell[0], style=colour(cell[1], max(self.steps, self.forwards)))
        return shown


class LiveView(View):
    """Redraws the response in place after every pass."""

    def __init__(self, piece: Callable[[int], str], length: int, steps: int, console: Console, gap: str = "") -> None:
        super().__init__(piece, length, steps)
        self.console, self.gap, self._drawn = console, gap, 0.0
        self._live = Live(self._frame(), console=console, auto_refresh=False, vertical_overflow="visible")

    def __enter__(self) -> LiveView:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(self._frame(), refresh=True)
        self._live.stop()

    def watch(self, reveal: Reveal) -> None:
        """Note what a pass revealed, and draw it unless the last drawing is very recent."""
        super().watch(reveal)
        if time.monotonic() - self._drawn >= _MIN_FRAME_S:
            self._live.update(self._frame(), refresh=True)
            self._drawn = time.monotonic()

    def _frame(self) -> Text:
        left = sum(cell is None for cell in self.cells)
        foot = Text(f"\nforward {self.forwards}, {left} masks left", style="dim")
        return self.text(self.gap) + foot


def legend(last_step: int) -> Text:
    """Return what the colours mean."""
    shown = Text("step 0 ", style="dim")
    for part in range(16):
        shown.append("\u2588", style=colour(part, 16))
    return shown.append(f" step {last_step}", style="dim")


def colour(step: int, steps: int) -> str:
    """Return the style of tokens revealed at ``step`` of ``steps``."""
    place = min(step / max(steps - 1, 1), 1.0) * (len(COLOURS) - 1)
    start = min(int(place), len(COLOURS) - 2)
    pair = zip(COLOURS[start], COLOURS[start + 1], strict=True)
    red, green, blue = (round(a + (place - start) * (b - a)) for a, b in pair)
    return f"rgb({red},{green},{blue})"


def printable(text: str) -> str:
    """Return ``text`` without control characters: a model must not be able to drive the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def pieces(tokenizer: Any) -> tuple[Callable[[int], str], str]:
    """Return what shows one token, and what stands between two: a space for tokenizers of whole words."""
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    gap = " " if type(model).__name__ == "WordLevel" else ""
    return (lambda token: str(tokenizer.decode([token]))), gap
