"""Values as JSON, so that what the judge compares are its own built-in objects and never the program's.

A list ``[tag, ...]`` stands for anything that is not None, bool, a 64-bit int, a float or a str. A subclass of a
built-in type becomes the built-in value, which is what ends tricks with ``__eq__``; an object of any other class
becomes a handle (``export``). Left out on purpose: shared references and cycles, which arrive as copies or as
``RecursionError``.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import sys
from collections.abc import Callable
from typing import Any

Export = Callable[[Any], list[Any]]
Resolve = Callable[[str, list[Any]], Any]

_WORD = 2**63
_BUILTIN = (bool, int, float, str, list, tuple, dict, set, frozenset, bytes, bytearray, complex)
_VIEWS = {"keys": type({}.keys()), "values": type({}.values()), "items": type({}.items())}
_NUMPY_KINDS = "biufcU"


class Undecodable(Exception):
    """The other side sent something that is no value."""


def encode(value: Any, export: Export) -> Any:
    """Return ``value`` in JSON form; ``export`` gives the form of an object that has none."""
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_WORD <= value < _WORD else ["i", hex(value)]
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value, export)
    return _encode_subclass(value, export)


def _encode_subclass(value: Any, export: Export) -> Any:
    if type(value).__module__ == "numpy":
        return _encode_numpy(value, export)
    for base in _BUILTIN:
        if isinstance(value, base):
            return encode(_as_base(value, base), export)
    return export(value)


def _as_base(value: Any, base: type) -> Any:
    """Return the built-in value under a subclass, read with the base's own methods."""
    if base in (list, tuple, set, frozenset):
        return base(base.__iter__(value))
    if base is dict:
        return {key: dict.__getitem__(value, key) for key in dict.__iter__(value)}
    if base is int:
        return int.__add__(value, 0)
    if base is float:
        return float.__add__(value, 0.0)
    if base is complex:
        return complex.__add__(value, 0)
    return str.__str__(value) if base is str else base(memoryview(value))


def _encode_numpy(value: Any, export: Export) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray) and value.dtype.kind in _NUMPY_KINDS:
        flat = [encode(item, export) for item in value.ravel().tolist()]
        return ["n", value.dtype.str, list(value.shape), flat]
    if isinstance(value, numpy.generic) and value.dtype.kind in _NUMPY_KINDS:
        return ["n", value.dtype.str, None, [encode(value.item(), export)]]
    return export(value)


def _items(tag: str) -> Callable[[Any, Export], list[Any]]:
    def write(value: Any, export: Export) -> list[Any]:
        return [tag, *[encode(item, export) for item in value]]

    return write


def _pairs(value: Any, export: Export) -> list[Any]:
    return ["d", *[encode(part, export) for pair in value.items() for part in pair]]


def _view(name: str) -> Callable[[Any, Export], list[Any]]:
    def write(value: Any, export: Export) -> list[Any]:
        pairs = [(item, None) for item in value] if name == "keys" else list(value)
        if name == "values":
            pairs = list(enumerate(pairs))
        return ["v", name, [[encode(part, export) for part in pair] for pair in pairs]]

    return write


def _time_delta(value: datetime.timedelta, _: Export) -> list[Any]:
    return ["x", "timedelta", value.days, value.seconds, value.microseconds]


def _iso(name: str) -> Callable[[Any, Export], list[Any]]:
    return lambda value, _: ["x", name, value.isoformat()]


_WRITERS: dict[type, Callable[[Any, Export], Any]] = {
    list: _items("l"),
    tuple: _items("t"),
    set: _items("s"),
    frozenset: _items("f"),
    dict: _pairs,
    bytes: lambda value, _: ["b", value.decode("latin-1")],
    bytearray: lambda value, _: ["B", value.decode("latin-1")],
    complex: lambda value, _: ["c", value.real, value.imag],
    range: lambda value, export: ["r", *[encode(part, export) for part in (value.start, value.stop, value.step)]],
    type(Ellipsis): lambda _value, _: ["e"],
    decimal.Decimal: lambda value, _: ["x", "Decimal", str(value)],
    fractions.Fraction: lambda value, export: ["x", "Fraction", encode((value.numerator, value.denominator), export)],
    datetime.date: _iso("date"),
    datetime.time: _iso("time"),
    datetime.datetime: _iso("datetime"),
    datetime.timedelta: _time_delta,
    collections.Counter: lambda value, export: ["x", "Counter", _pairs(value, export)],
    collections.OrderedDict: lambda value, export: ["x", "OrderedDict", _pairs(value, export)],
    collections.defaultdict: lambda value, export: ["x", "defaultdict", _pairs(value, export)],
    collections.deque: lambda value, export: ["x", "deque", encode(list(value), export), value.maxlen],
    **{kind: _view(name) for name, kind in _VIEWS.items()},
}


def decode(item: Any, resolve: Resolve) -> Any:
    """Return the value of a JSON form; ``resolve(tag, item)`` answers for handles. Raises ``Undecodable``."""
    if not isinstance(item, list):
        if isinstance(item, dict):
            raise Undecodable("a bare object")
        return item
    try:
        reader = _READERS.get(item[0])
        return reader(item, resolve) if reader is not None else resolve(item[0], item)
    except Undecodable:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, LookupError, TypeError, ValueError) as error:
        raise Undecodable(f"{type(error).__name__}: {error}"[:200]) from error


def _sequence(item: list[Any], resolve: Resolve) -> list[Any]:
    return [decode(part, resolve) for part in item[1:]]


def _mapping(item: list[Any], resolve: Resolve) -> dict[Any, Any]:
    if item[0] != "d":
        raise Undecodable("not a mapping")
    parts = _sequence(item, resolve)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _read_view(item: list[Any], resolve: Resolve) -> Any:
    pairs = dict([[decode(part, resolve) for part in pair] for pair in item[2]])
    return {"keys": pairs.keys, "values": pairs.values, "items": pairs.items}[item[1]]()


def _read_numpy(item: list[Any], resolve: Resolve) -> Any:
    import numpy  # present whenever the program could make such a value; imported here because few do

    _, name, shape, flat = item
    dtype = numpy.dtype(name)
    if dtype.kind not in _NUMPY_KINDS:
        raise Undecodable(f"array of {name}")
    array = numpy.array([decode(part, resolve) for part in flat], dtype=dtype)
    return array[0] if shape is None else array.reshape(shape)


def _read_named(item: list[Any], resolve: Resolve) -> Any:
    name, first = item[1], item[2]
    if name in ("Counter", "OrderedDict"):
        return getattr(collections, name)(_mapping(first, resolve))
    if name == "defaultdict":
        return collections.defaultdict(None, _mapping(first, resolve))
    if name == "deque":
        return collections.deque(decode(first, resolve), item[3])
    if name == "Decimal":
        return decimal.Decimal(first)
    if name == "Fraction":
        return fractions.Fraction(*decode(first, resolve))
    if name == "timedelta":
        return datetime.timedelta(*item[2:5])
    kinds: dict[str, Any] = {"date": datetime.date, "time": datetime.time, "datetime": datetime.datetime}
    return kinds[name].fromisoformat(first)


_READERS: dict[str, Callable[[list[Any], Resolve], Any]] = {
    "l": _sequence,
    "t": lambda item, resolve: tuple(_sequence(item, resolve)),
    "s": lambda item, resolve: set(_sequence(item, resolve)),
    "f": lambda item, resolve: frozenset(_sequence(item, resolve)),
    "d": _mapping,
    "v": _read_view,
    "i": lambda item, _: int(item[1], 16),
    "b": lambda item, _: item[1].encode("latin-1"),
    "B": lambda item, _: bytearray(item[1].encode("latin-1")),
    "c": lambda item, _: complex(item[1], item[2]),
    "r": lambda item, resolve: range(*_sequence(item, resolve)),
    "e": lambda _item, _: Ellipsis,
    "n": _read_numpy,
    "x": _read_named,
}
