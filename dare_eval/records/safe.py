"""Text of models and strangers, made harmless for where it goes: terminals, spreadsheets, pages, databases.

Escaping for HTML belongs to the code that writes HTML. Nothing is dropped: what cannot be shown is escaped.
"""

from __future__ import annotations

import re
import unicodedata

_ACTING = ("Cc", "Cf", "Cs")
_SHOWN_FORMATS = frozenset("\u00ad\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
"""Format characters that are signs of their own or that letters and emoji are joined with."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width


def one_line(text: object, width: int = 60) -> str:
    """Return ``text`` on one line of at most ``width`` characters, control characters (colours, bells) escaped."""
    raw = str(text)
    shown = "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in raw[: width + 1])
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def csv_cell(value: object) -> object:
    """Return ``value`` so that no spreadsheet runs it: a text that looks like a formula gets a leading apostrophe.

    Numbers stay numbers, also negative ones.
    """
    if not isinstance(value, str):
        return value
    text = storable(value)
    return "'" + text if text.startswith(_FORMULA) else text


def markdown_text(text: object, width: int = 60) -> str:
    """Return ``text`` on one line for Markdown: no markup, table cell, HTML, entity or formula comes of it."""
    return re.sub(r"([\\`*_{}\[\]<>|#$~&])", r"\\\1", one_line(text, width))


def visible(text: object) -> str:
    """Return ``text`` with its lines, and ``<U+202E>`` in the place of every character that would act, not show.

    Those are control characters, direction overrides and other format characters, and halves of characters (lone
    surrogates), which no page can hold. All kinds of spaces, and what letters and emoji are joined with, stay.
    """
    return str(text).replace("\r\n", "\n").translate(_VISIBLE)


def storable(text: str) -> str:
    """Return ``text`` as every database and file takes it: NUL and lone surrogates escaped."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


class _Visible(dict[int, str]):
    """What each character is shown as, worked out when it first occurs: a table of all would cost at import."""

    def __missing__(self, code: int) -> str:
        mark = chr(code)
        acts = unicodedata.category(mark) in _ACTING and mark not in _SHOWN_FORMATS and mark not in "\n\t"
        self[code] = f"<U+{code:04X}>" if acts else mark
        return self[code]


_VISIBLE = _Visible()
