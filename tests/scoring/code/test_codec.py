"""Values cross the wire unchanged, subclasses arrive as built-in values, and nothing undecodable passes."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dare_eval.scoring.code.inside import codec


def export(value):
    return ["h", 7]


def resolve(tag, item):
    if tag == "h":
        return ("handle", item[1])
    raise codec.Undecodable(tag)


def sent(value):
    return codec.decode(json.loads(json.dumps(codec.encode(value, export))), resolve)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.fractions() | st.decimals(allow_nan=False) | st.dates() | st.times() | st.datetimes() | st.timedeltas()
)  # fmt: skip
HASHABLE = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS
    | st.frozensets(HASHABLE)
    | st.sets(HASHABLE)
    | st.builds(range, st.integers(), st.integers(), st.integers(1)),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(HASHABLE, inner)
        | st.builds(collections.deque, st.lists(inner))
        | st.builds(collections.OrderedDict, st.dictionaries(HASHABLE, inner))
    ),
    max_leaves=12,
)


def same(first, second) -> bool:
    """Equal in value and type, NaN included."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float | complex):
        return repr(first) == repr(second)
    if isinstance(first, list | tuple | collections.deque):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    return bool(first == second)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_values_arrive_as_they_were_sent(value):
    assert same(sent(value), value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        np.array([1 + 2j]),
        np.array(["ab", "c"]),
        np.array([True, False]),
        np.zeros((0, 3)),
    ],
)
def test_arrays_arrive_with_shape_and_type(value):
    found = sent(value)
    assert found.dtype == value.dtype
    assert found.shape == value.shape
    assert np.array_equal(found, value)


def test_numpy_scalars_stay_numpy_scalars():
    assert isinstance(sent(np.float64(0.5)), np.float64)
    assert sent(np.int8(-3)) == -3


class Sly(int):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class SlyList(list):
    def __eq__(self, other):
        return True

    def __iter__(self):
        raise RuntimeError("its own iteration is never asked")


class Colour(enum.IntEnum):
    RED = 3


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Sly(4), 4),
        (SlyList([1]), [1]),
        (Colour.RED, 3),
        (Point(1, 2), (1, 2)),
        (type("S", (str,), {})("a"), "a"),
        (type("B", (bytes,), {})(b"a"), b"a"),
        (type("F", (float,), {})(0.5), 0.5),
        (type("D", (dict,), {})(a=1), {"a": 1}),
        (True, True),
    ],
)
def test_a_subclass_arrives_as_the_built_in_value(value, plain):
    found = sent(value)
    assert type(found) is type(plain)
    assert found == plain


def test_objects_without_a_value_become_handles_wherever_they_are():
    assert sent([object(), {"a": (math.pi, object())}]) == [("handle", 7), {"a": (math.pi, ("handle", 7))}]


def test_stdlib_containers_keep_their_class():
    assert sent(collections.Counter("aab")) == collections.Counter("aab")
    assert isinstance(sent(collections.Counter("a")), collections.Counter)
    assert sent(collections.deque([1, 2], 2)).maxlen == 2
    assert sent({"a": 1}.keys()) == {"a"}
    assert list(sent({"a": 1}.values())) == [1]
    assert sent(decimal.Decimal("1.50")).as_tuple() == decimal.Decimal("1.50").as_tuple()
    assert sent(fractions.Fraction(1, 3)) == fractions.Fraction(1, 3)
    assert sent(datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)).tzinfo is not None
    assert sent(...) is ...


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(st.sampled_from(sorted(codec._READERS)), inner, inner).map(list)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=10,
)


@settings(max_examples=500, deadline=None)
@given(JSON)
def test_strange_messages_are_refused_by_one_error(message):
    try:
        codec.decode(message, resolve)
    except codec.Undecodable:
        return
    assert not isinstance(message, dict)


MALFORMED = [
    {}, [], ["zz"], ["x", "Evil", 1], ["n", "O", [1], [1]], ["n", "f8", [2], [1.0]], ["i", "q"], ["d", "a"],
    ["s", ["l"]], ["x", "datetime", "soon"], ["v", "keys", 3], ["x", "defaultdict", ["l"]],
]  # fmt: skip


@pytest.mark.parametrize("message", MALFORMED)
def test_malformed_values_are_refused(message):
    with pytest.raises(codec.Undecodable):
        codec.decode(message, resolve)
