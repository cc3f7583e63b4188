r"""LaTeX answers in one spelling: wrappers, spacing, fractions, units, percent and degree signs.

``canonical`` changes how an answer is written, never its value. Units and percent signs are split off so that a
policy can decide about them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dare_eval.scoring.golds import drop_degrees

MAX_CHARS = 1000

_UNICODE = {
    "\u2212": "-", "\u2013": "-", "\u00d7": r"\times ", "\u22c5": r"\cdot ", "\u00b7": r"\cdot ", "\u00f7": r"\div ",
    "\u03c0": r"\pi ", "\u221e": r"\infty ", "\u222a": r"\cup ", "\u2264": r"\le ", "\u2265": r"\ge ",
    "\u2260": r"\ne ", "\u00b1": r"\pm ", "\u2208": r"\in ", "\uff0c": ",", "\u00a0": " ", "\u2009": " ",
    "\u202f": " ", "\u03b8": r"\theta ", "\u00b2": "^2", "\u00b3": "^3", "\u221a": r"\sqrt ",
}  # fmt: skip
_TABLE = {ord(char): latex for char, latex in _UNICODE.items()}
_RULES = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (
            r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|mathstrut|q?quad|hfill|newline)(?![A-Za-z])\.?",
            "",
        ),
        (r"(?<=\d)(?:\{,\}|,\s*\\!)\s*(?=\d{3})", ""),
        (r"(?<!\\)\\!", ""),
        (r"(?<!\\)\\[,;: ]|~", " "),
        (r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"\\(?:d|t|c)frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:l|r)brace(?![A-Za-z])", lambda found: "\\" + ("{" if "lbrace" in found[0] else "}")),
        (r"\\langle(?![A-Za-z])", "("),
        (r"\\rangle(?![A-Za-z])", ")"),
        (r"\\leqslant(?![A-Za-z])|\\leq(?![A-Za-z])|<=", r"\\le "),
        (r"\\geqslant(?![A-Za-z])|\\geq(?![A-Za-z])|>=", r"\\ge "),
        (r"\\neq(?![A-Za-z])|!=", r"\\ne "),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\(?:imath|mathrm\{i\})", "i"),
        (
            r"\\(?:mathbf|boldsymbol|mathbb|mathcal|mathit|vec|bar|overline|underline|textit|textbf|bm)\s*\{([^{}]*)\}",
            r"\1",
        ),
        (r"\\frac\s*(\w|\\pi)\s*(\w)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\w|\\pi)\s*\{", r"\\frac{\1}{"),
        (r"\\frac\s*(\{[^{}]*\})\s*(\w)", r"\\frac\1{\2}"),
        (r"\\text\{\s*(\w*\d\w*)\s*\}(?=_)", r"\1"),
        (r"(?<![A-Za-z\\])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"(?<![A-Za-z\\])(pi|sin|cos|tan|log|ln)(?![A-Za-z])", r"\\\1 "),
        (r"\*\*", "^"),
        (r"\^\s*(-?\d{2,})", r"^{\1}"),
        (r"\\sqrt\s*(\d|[a-z](?![a-z]))", r"\\sqrt{\1}"),
        (r"\{,\}", ","),
    )
)
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_TEXT = re.compile(r"\\(?:text|mbox|mathrm|textrm|textnormal|operatorname|rm|hbox)\s*\{([^{}]*)\}")
_UNIT_TEXT = re.compile(
    r"(?<=[\d.)}\]i])\s*(?:\\(?:text|mbox|mathrm|textrm|textnormal|hbox)\s*\{\s*(?P<tex>[^{}]*[A-Za-z][^{}]*)\}"
    r"|(?<![\\A-Za-z])(?P<bare>(?:sq(?:uare)?\.? |cubic )?[A-Za-z]{2,14}\.?(?:(?: per |/| )[A-Za-z]{1,14}){0,2}))"
    r"\s*(?:\^\s*\{?(?P<power>[23])\}?)?\s*\.?$"
)
_PERCENT = re.compile(r"\s*(?:\\%|%|\\?\b(?:percent)\b|\\text\{\s*(?:percent|\\?%)\s*\})\s*$", re.IGNORECASE)
_ABBREVIATIONS = {
    "inch": "in inches", "foot": "ft feet", "centimeter": "cm", "millimeter": "mm", "meter": "m metre",
    "kilometer": "km", "mile": "mi", "yard": "yd", "kilogram": "kg", "gram": "g", "pound": "lb lbs", "second": "s sec",
    "minute": "min", "hour": "h hr hrs", "day": "", "week": "", "month": "", "year": "yr yrs", "dollar": "", "cent": "",
    "degree": "", "radian": "rad", "liter": "l litre", "mile per hour": "mph",
}  # fmt: skip
_UNITS = {short: unit for unit, listed in _ABBREVIATIONS.items() for short in (unit, *listed.split())}


class Canonical(NamedTuple):
    """An answer in one spelling, its unit in words ('' for none) and whether a percent sign ended it."""

    text: str
    unit: str
    percent: bool


def canonical(answer: str) -> Canonical:
    """Return the one spelling of a LaTeX or plain answer."""
    plain = spell(answer)
    percent = _PERCENT.search(plain)
    if percent is not None:
        plain = plain[: percent.start()]
    unit = ""
    found = None if "=" in plain and "," in plain else _UNIT_TEXT.search(plain)
    if found is not None and percent is None:
        words = (found["tex"] or found["bare"]).strip(" .").lower()
        if words not in ("or", "and", "cup", "if", "mod"):
            unit = _unit(words) + (f"^{found['power']}" if found["power"] else "")
            plain = plain[: found.start()]
    return Canonical(_squeeze(plain), unit, percent is not None)


def spell(answer: str) -> str:
    """Apply the spelling rules: wrappers, spacing commands, fractions, relation signs, thousands separators."""
    plain = _unwrap(drop_degrees(answer[:MAX_CHARS].translate(_TABLE)))
    for pattern, replacement in _RULES:
        plain = pattern.sub(replacement, plain)
    plain = plain.replace(r"\$", "").replace("$", "").strip()
    return _merge_thousands(plain).strip(" \t\n,;:").rstrip(" .,;:")


def _merge_thousands(plain: str) -> str:
    """Join digit groups where the commas cannot separate list items: outside brackets, and every group has 3 digits."""
    if "," not in plain or re.search(r"[(\[{]\s*-?\d[^)\]}]*,", plain):
        return plain
    return _THOUSANDS.sub(lambda found: found[1] + found[2].replace(",", ""), plain)


def _unwrap(plain: str) -> str:
    for _ in range(4):
        before = plain
        plain = plain.strip().rstrip(". ")
        for left, right in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`")):
            if plain.startswith(left) and plain.endswith(right) and len(plain) > len(left) + len(right):
                inner = plain[len(left) : -len(right)]
                if left not in inner:
                    plain = inner
        if plain == before:
            break
    return plain


def _squeeze(plain: str) -> str:
    r"""Drop white space, except where it ends a command name before a letter."""
    plain = re.sub(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])", r"\1\0", plain.strip(" \t\n,;:").rstrip(" .,;:"))
    return re.sub(r"\s+", "", plain).replace("\0", " ")


def _unit(words: str) -> str:
    words = re.sub(r"^(?:sq\.?|square) ", "", words) + ("^2" if re.match(r"sq", words) else "")
    return _UNITS.get(words) or _UNITS.get(words.rstrip("s")) or ""


def plain_text(answer: str) -> str | None:
    """Return the words of a text answer in lower case, or None when the answer is mathematics."""
    words = _TEXT.sub(r" \1 ", answer)
    words = re.sub(r"\\[,;:! ]|[{}$*.,;:'\"`!?]|\\(?:text|mathrm)", " ", words)
    words = re.sub(r"^\s*\(\s*([A-Za-z]+)\s*\)\s*$", r"\1", words.strip())
    if re.search(r"[\\\d=<>^_+/|\[\]()]", words) or not re.search(r"[A-Za-z]", words):
        return None
    parts = re.sub(r"[\s-]+", " ", words).strip().lower().split(" ")
    letters = " ".join(sorted(parts) if max(map(len, parts)) == 1 else parts)  # letters of a selection: any order
    return letters if len(letters) > 1 or "\\text" in answer or "\\mathrm" in answer or "(" in answer else None
