"""Colours and marks that stay apart for colour-blind readers, in light and in dark; no meaning rests on colour alone.

The colours are those of Okabe and Ito (2008) without yellow and black, which vanish on one of the two backgrounds.
"""

from __future__ import annotations

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
DASHES = ("solid", "dash", "dot", "dashdot")
STATES = ("rgba(128,128,128,0.18)", "#56B4E9", "#D55E00", "#CC79A7")
"""Of a position in the trajectory picture: masked, known, revealed by this forward, replaced by it."""


def colour(number: int) -> str:
    """Return the colour of series ``number``."""
    return PALETTE[number % len(PALETTE)]


def symbol(number: int) -> str:
    """Return the mark of series ``number``; colour and mark together repeat after 24 series."""
    return SYMBOLS[number % len(SYMBOLS)]


def dash(number: int) -> str:
    """Return the line of series ``number``."""
    return DASHES[(number // len(PALETTE)) % len(DASHES)]


def clear(hex_colour: str, alpha: float) -> str:
    """Return a colour with opacity ``alpha``."""
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
