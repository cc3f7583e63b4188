"""Text of models and strangers, made harmless for where it is shown: terminals and spreadsheets.

Escaping for HTML belongs to the code that writes HTML. Nothing is dropped: what cannot be shown is escaped.
"""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def one_line(text: object, width: int = 60) -> str:
    """Return ``text`` on one line of at most ``width`` characters, control characters (colours, bells) escaped."""
    raw = str(text)
    shown = "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in raw[: width + 1])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def csv_cell(value: object) -> object:
    """Return ``value`` so that no spreadsheet runs it: a text that looks like a formula gets a leading apostrophe.

    Numbers stay numbers, also negative ones.
    """
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
