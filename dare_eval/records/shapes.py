"""Checks that a value read from a file has the types its reader relies on, so a damaged file is a named problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dare_eval.errors import DataError

TEXT, FLAG, WHOLE, NUMBER = "a text", "true or false", "a whole number", "a finite number"
LIST, NUMBERS, OBJECT = "a list", "a list of whole numbers", "an object"
_KINDS: dict[str, tuple[type, ...]] = {
    TEXT: (str,),
    FLAG: (bool,),
    WHOLE: (int,),
    NUMBER: (int, float),
    LIST: (list, tuple),
    NUMBERS: (list, tuple),
    OBJECT: (dict,),
}

Rules = tuple[tuple[tuple[str, ...], str], ...]
"""Pairs of names and what each of them must be; absent and null are always fine."""

_INT32 = 2**31  # what every database stores as an integer
_INT64 = 2**63  # what a table column of lists stores
_LARGE = 1e300


def check_shape(record: object, rules: Rules, what: str, *, needed: Iterable[str] = ()) -> None:
    """Raise ``DataError`` naming ``what`` and the field when ``record`` breaks a rule or lacks a ``needed`` field."""
    if not isinstance(record, Mapping):
        raise DataError(f"{what} is not an object", seen=repr(record)[:80])
    for name in needed:
        if record.get(name) is None:
            raise DataError(f"{what} has no '{name}'", seen=sorted(map(str, record))[:12])
    for names, kind in rules:
        for name in names:
            if not _fits(record.get(name), kind):
                raise DataError(f"{what}: '{name}' has the wrong type", seen=repr(record[name])[:80], allowed=kind)


def check_objects(values: Mapping[Any, object], what: str) -> None:
    """Raise ``DataError`` when a value of ``values`` is not an object."""
    for key, value in values.items():
        if not isinstance(value, Mapping):
            raise DataError(f"{what}: entry '{key}' is not an object", seen=repr(value)[:80])


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite number that arithmetic can hold; JSON also writes 1e999 and true."""
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(abs(value) < _LARGE)


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return True
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != FLAG):
        return False
    found: Any = value
    if kind == NUMBERS:
        return set(map(type, found)) <= {int} and -_INT64 <= min(found, default=0) <= max(found, default=0) < _INT64
    if kind == NUMBER:
        return is_number(found)
    return kind != WHOLE or -_INT32 <= found < _INT32
