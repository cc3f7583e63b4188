r"""Gold answers cleaned by a stated rule, the same for every data set.

Numbers: white space, currency signs and thousands separators go, a trailing percent or degree sign goes, a worked
answer is cut after its last ``####``. Mathematics: only wrappers go (outer ``$``, ``\boxed``, spacing commands); the
degree sign is dropped because answers are written with and without it. An empty gold, ``None`` or ``nan`` is refused:
its item is counted as ``unparsable_gold``, never as wrong.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dare_eval.scoring import boxes, numbers

_EMPTY = {"", "none", "nan", "null", "n/a"}
_DEGREE = re.compile(
    r"\s*(?:\^\s*(?:\{\s*\\(?:circ|degree)\s*\}|\\(?:circ|degree)(?![A-Za-z]))|\u00b0|\\degree(?![A-Za-z]))"
)
_NUMBER_DRESSING = re.compile(r"[$\u20ac\u00a3\u00a5\s]|\\[,!;:$%]|%")


def gold_text(reference: Any) -> str | None:
    """Return a reference as text without outer space, or None when it is empty (also None, ``nan``)."""
    plain = str(reference).strip()
    return None if plain.lower() in _EMPTY else plain


def clean_number_gold(reference: Any) -> Fraction | None:
    """Return the value of a numeric gold, or None when it is not one number."""
    plain = gold_text(reference)
    return None if plain is None else _number_gold(plain)


@lru_cache(maxsize=4096)
def _number_gold(plain: str) -> Fraction | None:
    tail = numbers.tidy(plain.rpartition("####")[2])
    bare = _NUMBER_DRESSING.sub("", _DEGREE.sub("", boxes.unwrap(tail))).rstrip(".")
    found = list(numbers.numbers(bare))
    return found[0].value if len(found) == 1 and found[0].text == bare else None


def clean_math_gold(reference: Any) -> str | None:
    """Return a mathematical gold without wrappers, or None when it is empty."""
    plain = gold_text(reference)
    if plain is None:
        return None
    found = boxes.boxes(plain)
    if found and found[-1].closed:
        plain = ", ".join(box.text for box in boxes.final_group(found, plain))
    return gold_text(drop_degrees(plain.strip().strip("$").strip()))


def drop_degrees(plain: str) -> str:
    """Drop degree signs in any spelling."""
    return _DEGREE.sub("", plain)
